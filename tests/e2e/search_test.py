"""search: other settings of a model, end to end: drawn, tried, killed, taken over, told."""
import json
import math
import os
import struct

from tests.cases import case, main
from tests.e2e.harness import House, rows_of
from tests.e2e.search_space import search_of


def trials_of(house, job):
    return house.json("trials", job["id"])["trials"]


def settings_of(trials):
    return [tuple(sorted(trial["settings"].items())) for trial in trials]


@case("A search finds better settings than the spec's own, and the answer is better by them", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(search_of(house, "random"), "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        trials = trials_of(house, job)
        assert len(trials) == 8 and len(set(settings_of(trials))) == 8, trials
        assert all(trial["folds"]["done"] >= 1 for trial in trials), trials
        assert trials[0]["settings"] == {"learning_rate": 0.002, "max_depth": 1, "num_leaves": 2}, trials[0]
        best = min(trials, key=lambda trial: trial["score"])
        assert best["score"] < 0.8 * trials[0]["score"], trials
        assert best["trial"] > 0 and trials[0]["weight"] < 0.5, trials
        assert job["scores"]["oof"] < 0.8 * trials[0]["score"], (job["scores"], trials)
        # What mattered is told.
        told = house.json("trials", job["id"])["search"]
        assert told["method"] == "random", told
        shares = {p["path"]: p["importance"] for p in told["parameters"]}
        assert set(shares) == {"learning_rate", "num_leaves", "max_depth"}, shares
        assert all(0 <= share <= 1 for share in shares.values()) and max(shares.values()) > 0, shares

        # The models predict later rows with the settings that they were trained with.
        later = house.json("predict", job["id"], "--data", f"{house.data}/test400.csv", "--out",
                           f"{house.root}/later.csv")
        assert later["predictions"]["sha256"] == job["predictions"]["sha256"], later


@case("TPE draws on the way, survives kill -9 of traind and of trees, and goes on in another Job", limit_s=200)
def _():
    with House(slots=1) as house:
        house.start()
        spec = search_of(house, "tpe", trials=6)
        spec["model"]["lightgbm"]["num_iterations"] = 3000
        spec["model"]["lightgbm"]["early_stopping_round"] = 0
        job = house.submit(spec)
        house.until(job["id"], "a further trial runs",
                    lambda j: any(f["trial"] > 0 and f["state"] == "RUNNING" for f in j["folds"]))
        before = trials_of(house, job)
        drawn = [trial for trial in before if trial["trial"] > 0 and trial["settings"]]
        assert drawn and len(drawn) < 5, before
        house.kill_daemon()
        house.kill_running("traintree")
        house.start()
        job = house.wait(job["id"], limit_s=60)
        assert job["state"] == "SUCCEEDED", job
        after = trials_of(house, job)
        for trial in drawn:
            assert after[trial["trial"]]["settings"] == trial["settings"], (trial, after)
        begun = [trial for trial in after if trial["settings"]]
        assert len(set(settings_of(begun))) == len(begun) > len(drawn), after

        # Another Job takes over what this one has tried, and tries more.
        more = house.submit({"from": job["id"], "budget": {"time": "60s"}, "search": {"trials": 9}}, "--wait")
        longer = trials_of(house, more)
        assert len(longer) == 9, longer
        assert settings_of(longer)[:len(begun)] == settings_of(after)[:len(begun)], (longer, after)
        assert any(f["trial"] > 0 and f["reused"] for f in more["folds"]), more["folds"]
        assert any(f["trial"] >= 6 for f in more["folds"]), more["folds"]


@case("Networks are searched, too: fields of the model and of its training, with rungs", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(rows=400, folds=3, epochs=4, budget="60s")
        spec["search"] = {"trials": 7, "method": "asha", "space": {
            "model.mlp.hidden": [[4], [32, 32], [64]], "train.learning_rate": "log(1e-5, 3e-2)",
            "train.epochs": "int(1, 6)"}}
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        trials = trials_of(house, job)
        # Trained to its end, or stopped within it at a rung of epochs.
        trained = [t["folds"]["done"] + t["folds"]["partial"] for t in trials]
        assert trials[0]["folds"]["done"] == 3 and min(trained) >= 1, trials
        assert 1 in trained, f"some stop after their first fold: {trials}"
        for fold in job["folds"]:
            asked = trials[fold["trial"]]["settings"]["train.epochs"]
            assert fold["progress"]["done"] <= asked, (fold, asked)


@case("A network stops within a fold where others are better after as many epochs", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        # An epoch takes long enough for a stop to come before the last one.
        spec = house.spec(rows=3000, folds=2, epochs=45, budget="90s", model={"mlp": {"hidden": [256, 256]}},
                          train={"batch": 8})
        spec["search"] = {"trials": 4, "method": "asha", "space": {"train.learning_rate": [1e-2, 1e-5, 1e-6, 1e-7]}}
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert any("has place" in d["cause"] and "accuracy of" in d["cause"] for d in job["decisions"]), job["decisions"]
        done = {f["trial"]: f["progress"]["done"] for f in job["folds"] if f["index"] == 0}
        assert done[0] == 45 and min(done.values()) < 45, job["folds"]


@case("What the columns are worth is told of the models that answer, by their weights", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(rows=4000, folds=2, budget="30s")
        spec["model"] = {"automatic": {"trials": 4}}
        spec["predictions"] = {"ensemble": "mean"}  # all answer
        del spec["train"]
        job = house.submit(spec, "--wait")
        assert job["state"] == "SUCCEEDED", job
        members = {m["attempt"]: m for m in job["predictions"]["members"]}
        assert {m["trial"] for m in members.values()} > {0}, members
        told = [p for p in house.json("metrics", job["id"])["points"]
                if p["name"].startswith("importance:") and p["attempt"] in members]
        assert any(members[p["attempt"]]["trial"] > 0 for p in told), told
        importance = house.job(job["id"])["report"]["importance"]
        assert importance
        for of in importance:
            by_fold = {}
            for point in told:
                if point["name"] == "importance:" + of["column"]:
                    member = members[point["attempt"]]
                    by_fold.setdefault(member["fold"], []).append((member["weight"], point["value"]))
            means = [sum(w * v for w, v in drops) / sum(w for w, _ in drops) for drops in by_fold.values()]
            assert of["folds"] == len(means) and abs(of["drop"] - sum(means) / len(means)) < 1e-9, (of, by_fold)


def floats(path, columns):
    """The rows of a float32 array in a file."""
    with open(path, "rb") as f:
        data = f.read()
    values = [value for value, in struct.iter_unpack("<f", data[data.index(b"\n") + 1:])]
    return [values[at:at + columns] for at in range(0, len(values), columns)]


@case("Later rows are joined by a second layer, from a file and one by one", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        spec = search_of(house, "random", trials=3)
        spec["predictions"] = {"ensemble": "mean"}  # all three answer
        job = house.submit(spec, "--wait")
        members = job["predictions"]["members"]
        assert job["state"] == "SUCCEEDED" and len(members) == 6, job
        # The Job's own layer, or none, is replaced by one that is known.
        results = house.results(job["id"])
        manifest_path = os.path.join(results, "current", "manifest.json")
        with open(manifest_path, encoding="utf-8") as f:
            manifest = json.load(f)
        exponents = {0: 0.5, 1: 1.5, 2: 0.25}
        manifest["powers"] = [{"trial": trial, "exponent": power} for trial, power in exponents.items()]
        with open(manifest_path, "w", encoding="utf-8") as f:
            json.dump(manifest, f)
        expected = [[0.0] * 3 for _ in range(120)]
        for fold in (0, 1):
            logs = [[0.0] * 3 for _ in expected]
            for member in members:
                if member["fold"] == fold:
                    for log, row in zip(logs, floats(f"{results}/attempts/{member['attempt']}/test.npy", 3)):
                        for c, p in enumerate(row):
                            log[c] += exponents[member["trial"]] * math.log(p)
            for to, log in zip(expected, logs):
                for c in range(3):
                    to[c] += math.exp(log[c]) / sum(map(math.exp, log)) / 2

        house.json("predict", job["id"], "--data", f"{house.data}/test400.csv", "--out", f"{house.root}/later.csv")
        header, *rows = rows_of(f"{house.root}/later.csv")
        at = [i for i, name in enumerate(header) if name.startswith("p_")]
        answered = house.json("predict", job["id"], "--rows", f"{house.data}/test400.csv")["rows"]
        assert len(rows) == len(answered) == 120, (len(rows), len(answered))
        for row, one, want in zip(rows, answered, expected):
            for i, c in zip(at, range(3)):
                assert abs(float(row[i]) - want[c]) < 1e-4, (row, want)
                assert abs(one["probabilities"][c] - want[c]) < 1e-4, (one, want)


@case("Mistakes in a search name their place before anything runs")
def _():
    with House() as house:
        house.start()
        for change, place in ((({"model.lightgbm.num_leavs": "int(2, 8)"}, "tpe"), "did you mean 'model.lightgbm.num_leaves'?"),
                              (({"model.lightgbm.num_leaves": "int(8, 2)"}, "tpe"), "ends reversed"),
                              (({"model.lightgbm.learning_rate": "log(0, 1)"}, "tpe"), "above 0"),
                              (({"model.lightgbm.learning_rate": "uniform(0.1, 0.2)"}, "grid"), "too many values for a grid"),
                              (({}, "tpe"), "search.space is empty")):
            spec = search_of(house, change[1])
            spec["search"]["space"] = change[0]
            refused = house.cli("submit", "-f", house.write_spec(spec))
            assert refused.returncode == 2 and place in refused.stderr, (change, refused)
        spec = search_of(house, "tpe")
        del spec["budget"]
        refused = house.cli("submit", "-f", house.write_spec(spec))
        assert refused.returncode == 2 and "needs budget.time" in refused.stderr, refused


main()
