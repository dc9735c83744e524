"""Boosted trees of both libraries, and kernels, end to end: answers, kills, later rows, and the files that are left."""
import array
import ctypes
import glob
import json
import os
import subprocess
import sys

from tests.cases import Skip, case, main
from tests.e2e.harness import House, rows_of

DEPS = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../.deps"))
TREES = os.path.join(DEPS, "trees")
MODELS = {"lightgbm": "model.txt", "xgboost": "model.ubj"}


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


def model_of(house, kind):
    """The file of a fold's trees, and the test rows as they see them: (path, cells row by row, columns)."""
    job = house.submit(spec_of(house, kind), "--wait")
    path = sorted(glob.glob(os.path.join(house.results(job["id"]), "attempts/*", MODELS[kind])))[0]
    with open(os.path.join(os.path.dirname(path), "model.json")) as f:
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
    return path, array.array("f", cells), len(features)


def check_answers(path, answers):
    """These are the probabilities that the fold has left beside its trees."""
    with open(os.path.join(os.path.dirname(path), "test.npy"), "rb") as f:
        told = array.array("f", f.read()[-4 * len(answers):])
    assert len(told) == len(answers) and max(abs(a - b) for a, b in zip(answers, told)) < 1e-6


@case("The files that are left are the libraries' own: LightGBM's functions read one and answer as the Job did")
def _():
    with House(slots=2) as house:
        house.start()
        path, data, columns = model_of(house, "lightgbm")
        rows = len(data) // columns
        library = ctypes.CDLL(os.path.join(TREES, "lightgbm/lib/lib_lightgbm.so"))
        booster, rounds = ctypes.c_void_p(), ctypes.c_int()
        assert library.LGBM_BoosterCreateFromModelfile(path.encode(), ctypes.byref(rounds), ctypes.byref(booster)) == 0
        assert 0 < rounds.value < 2000, rounds
        out, length = (ctypes.c_double * (rows * 3))(), ctypes.c_int64()
        assert library.LGBM_BoosterPredictForMat(
            booster, ctypes.c_void_p(data.buffer_info()[0]), 0, rows, columns, 1, 0, 0, -1, b"",
            ctypes.byref(length), out) == 0
        check_answers(path, list(out))


@case("The files that are left are the libraries' own: XGBoost's functions read one and answer as the Job did")
def _():
    with House(slots=2) as house:
        house.start()
        path, data, columns = model_of(house, "xgboost")
        library = ctypes.CDLL(os.path.join(TREES, "xgboost/lib/libxgboost.so"))
        library.XGBGetLastError.restype = ctypes.c_char_p

        def call(name, *arguments):
            assert getattr(library, name)(*arguments) == 0, library.XGBGetLastError()
        booster, matrix = ctypes.c_void_p(), ctypes.c_void_p()
        call("XGBoosterCreate", None, ctypes.c_uint64(0), ctypes.byref(booster))
        call("XGBoosterLoadModel", booster, path.encode())
        rounds = ctypes.c_int()
        call("XGBoosterBoostedRounds", booster, ctypes.byref(rounds))
        assert 0 < rounds.value < 2000, rounds
        call("XGDMatrixCreateFromMat", ctypes.c_void_p(data.buffer_info()[0]), ctypes.c_uint64(len(data) // columns),
             ctypes.c_uint64(columns), ctypes.c_float(float("nan")), ctypes.byref(matrix))
        how = {"type": 0, "training": False, "iteration_begin": 0, "iteration_end": 0, "strict_shape": True}
        shape, dimensions, out = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_uint64(), ctypes.POINTER(ctypes.c_float)()
        call("XGBoosterPredictFromDMatrix", booster, matrix, json.dumps(how).encode(), ctypes.byref(shape),
             ctypes.byref(dimensions), ctypes.byref(out))
        assert shape[:dimensions.value] == [len(data) // columns, 3], shape[:dimensions.value]
        check_answers(path, out[:len(data) // columns * 3])


# What docs/LOADING.md says, and the answers. Names of columns are not checked, as these rows have none.
PACKAGES = {
    "lightgbm": "trees.predict(rows)",
    "xgboost": "trees.predict(xgboost.DMatrix(rows, feature_names=trees.feature_names, feature_types=trees.feature_types,"
               " enable_categorical=True))",
}


def python_with(package):
    """The first Python that can import the package, and its environment."""
    environment = {**os.environ, "PYTHONPATH": TREES}
    for python in (os.path.join(DEPS, "venv/bin/python"), sys.executable):
        for env in (None, environment):
            if os.path.exists(python) and subprocess.run([python, "-c", f"import {package}, numpy"], env=env,
                                                         capture_output=True).returncode == 0:
                return python, env
    raise Skip(f"no Python here has the package {package}")


for KIND in ("lightgbm", "xgboost"):
    @case(f"The Python package of {KIND} loads what a Job has left, and answers as it did")
    def _(kind=KIND):
        python, environment = python_with(kind)
        with House(slots=2) as house:
            house.start()
            path, data, columns = model_of(house, kind)
            program = house.write("load.py", f"""
import json, sys
import numpy, {kind}
trees = {kind}.Booster(model_file=sys.argv[1])
rows = numpy.fromfile(sys.argv[2], dtype=numpy.float32).reshape(-1, int(sys.argv[3]))
print(json.dumps({PACKAGES[kind]}.ravel().astype(float).tolist()))
""")
            cells = house.write("rows.f32", data.tobytes())
            result = subprocess.run([python, program, path, cells, str(columns)], env=environment, capture_output=True,
                                    text=True, timeout=60)
            assert result.returncode == 0, result.stderr
            check_answers(path, json.loads(result.stdout.strip().split("\n")[-1]))


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
