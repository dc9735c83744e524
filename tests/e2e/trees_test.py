"""Boosted trees of both libraries, and kernels, end to end: answers, kills, later rows, and the files that are left."""
import array
import ctypes
import glob
import json
import os

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

TREES = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../.deps/trees"))


def spec_of(house, kind, rows=400, budget="60s", **settings):
    spec = house.spec(rows=rows, folds=3, budget=budget)
    spec["model"] = {kind: settings}
    del spec["train"]
    return spec


def long_run(kind):
    """Settings that train for many seconds on few rows."""
    if kind == "lightgbm":
        return {"num_iterations": 100000, "learning_rate": 0.001, "early_stopping_round": 0}
    return {"num_boost_round": 100000, "learning_rate": 0.001, "early_stopping_rounds": 0}


for KIND in ("lightgbm", "xgboost", "kernel"):
    @case(f"{KIND} answers, and its models predict a later file to the same bytes", limit_s=120)
    def _(kind=KIND):
        with House(slots=2) as house:
            house.start()
            job = house.submit(spec_of(house, kind), "--wait")
            assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
            assert all(f["state"] == "DONE" for f in job["folds"]), job["folds"]
            assert job["scores"]["oof"] > 0.8, job["scores"]
            assert house.processes("traintree"), "it is kept for the next task"
            whole = rows_of(os.path.join(house.results(job["id"]), "current/predictions.csv"))
            copy = os.path.join(house.root, "later.csv")
            later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test400.csv"), "--out", copy)
            assert later["quality"] == "FULL", later
            assert rows_of(copy) == whole

for KIND in ("lightgbm", "xgboost"):
    @case(f"A traintree that is killed goes on from its checkpoint ({KIND})", limit_s=120)
    def _(kind=KIND):
        with House(slots=1) as house:
            house.start()
            job = house.submit(spec_of(house, kind, rows=2000, budget="60s", **long_run(kind)))
            house.until_saved(job["id"])
            house.kill_running("traintree")
            house.until_again(job["id"], 50)  # the other fold may have the slot first
            job = house.finish(job["id"])
            assert job["state"] == "SUCCEEDED", job
            began = [a["first_step"] for a in job["attempts"] if a["first_step"]]
            assert began and began[0] > 0, job["attempts"]


@case("The files that are left are the libraries' own: LightGBM's functions read one and answer as the Job did")
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(spec_of(house, "lightgbm"), "--wait")
        folder = sorted(glob.glob(os.path.join(house.results(job["id"]), "attempts/*/model.txt")))[0]
        library = ctypes.CDLL(os.path.join(TREES, "lightgbm/lib/lib_lightgbm.so"))
        booster, rounds = ctypes.c_void_p(), ctypes.c_int()
        assert library.LGBM_BoosterCreateFromModelfile(folder.encode(), ctypes.byref(rounds), ctypes.byref(booster)) == 0
        assert 0 < rounds.value < 2000, rounds
        with open(os.path.join(os.path.dirname(folder), "model.json")) as f:
            model = json.load(f)["model"]
        numbers = {e["feature"] for e in model["encoder"]["numeric"]}
        codes = {e["feature"]: e["input_codes"] for e in model["encoder"]["categorical"]}
        features = model["input"]["features"]
        header, *rows = rows_of(os.path.join(house.data, "test400.csv"))
        cells = []
        for row in rows:
            for i, feature in enumerate(features):
                text = row[header.index(feature["name"])].strip()
                if i in numbers:
                    cells.append(float(text) if text not in ("", "?") else float("nan"))
                else:
                    known = feature["categories"]
                    code = codes[i][known.index(text)] - 2 if text in known else -1
                    cells.append(float(code) if code >= 0 else float("nan"))
        data = array.array("f", cells)
        out, length = (ctypes.c_double * (len(rows) * 3))(), ctypes.c_int64()
        assert library.LGBM_BoosterPredictForMat(
            booster, ctypes.c_void_p(data.buffer_info()[0]), 0, len(rows), len(features), 1, 0, 0, -1, b"",
            ctypes.byref(length), out) == 0
        with open(os.path.join(os.path.dirname(folder), "test.npy"), "rb") as f:
            told = array.array("f", f.read()[-4 * len(out):])
        assert max(abs(a - b) for a, b in zip(out, told)) < 1e-6


@case("What contradicts itself is refused at once, and a library that is missing is named", limit_s=60)
def _():
    with House(slots=1) as house:
        os.environ["TRAIND_LIGHTGBM"] = "/nowhere/lib_lightgbm.so"
        try:
            house.start()
        finally:
            del os.environ["TRAIND_LIGHTGBM"]
        result = house.cli("submit", "-f", house.write_spec(spec_of(house, "lightgbm", boosting="rf")))
        assert result.returncode != 0 and "boosting" in result.stderr + result.stdout, result
        job = house.submit(spec_of(house, "lightgbm"), "--wait")
        text = json.dumps(job)
        assert "LightGBM 4.7.0 is missing" in text and "/nowhere/lib_lightgbm.so" in text, job
        assert job["quality"] == "FLOOR", job


main()
