"""Folds of earlier Jobs: the result cache, and Jobs that go on from another."""
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House, moment, rows_of, sha256


def took(job):
    return moment(job["finished_at"]) - moment(job["accepted_at"])


def trains(job):
    return [a for a in job["attempts"] if a["task"].startswith("fold-")]


@case("A rerun is served from the cache, trains nothing and says from which Job it is")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(folds=3, epochs=6, cache="use")
        first = house.submit(spec, "--wait")
        assert len(trains(first)) == 3, first
        # Another name, budget and labels train the same.
        again = house.submit({**spec, "name": "other", "budget": {"time": "40s"}, "labels": {"a": "b"}}, "--wait")
        assert again["state"] == "SUCCEEDED" and again["quality"] == "FULL", again
        assert trains(again) == [], again["attempts"]
        for fold in again["folds"]:
            assert fold["state"] == "DONE" and fold["reused"] and fold["from_job"] == first["id"], fold
        assert [d["rule"] for d in again["decisions"]] == ["cache"], again["decisions"]
        assert first["id"] in again["decisions"][0]["cause"], again["decisions"]
        assert took(again) < 1, took(again)
        assert rows_of(again["predictions"]["path"]) == rows_of(first["predictions"]["path"])
        assert again["scores"] == first["scores"], (first["scores"], again["scores"])
        shown = house.job(again["id"])["report"]
        assert shown["folds_done"] == 3 and shown["folds_reused"] == 3 and shown["device_s"] == 0, shown


@case("What shapes training, other bytes, --force-retrain and cache: off make it train")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(folds=2, epochs=4, cache="use")
        first = house.submit(spec, "--wait")
        for flags in (["--set", "train.epochs=5"], ["--set", "data.seed=8"], ["--force-retrain"], ["--cache", "off"]):
            job = house.submit(spec, "--wait", *flags)
            assert len(trains(job)) == 2, (flags, job["attempts"])
        # The newest that trained, and gave its folds: --force-retrain.
        job = house.submit(spec, "--wait")
        assert trains(job) == [] and job["folds"][0]["from_job"] != first["id"], job["folds"]
        path = os.path.join(house.data, spec["data"]["train"])
        with open(path) as f:
            lines = f.readlines()
        house.write(spec["data"]["train"], "".join(lines[:-1]))
        assert len(trains(house.submit(spec, "--wait"))) == 2


@case("A source whose folder is gone is a miss; one that was reused outlives it")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(folds=2, epochs=4, cache="use")
        first = house.submit(spec, "--wait")
        second = house.submit(spec, "--wait")
        assert trains(second) == [], second
        shutil.rmtree(house.results(first["id"]))
        third = house.submit(spec, "--wait")
        assert trains(third) == [], third  # from the second, which has copies
        shutil.rmtree(house.results(second["id"]))
        shutil.rmtree(house.results(third["id"]))
        fourth = house.submit(spec, "--wait")
        assert len(trains(fourth)) == 2 and fourth["quality"] == "FULL", fourth


@case("A Job that was cut is topped up: it begins with the source's answer and ends better off")
def _():
    with House(slots=2) as house:
        house.start()
        cut = house.submit(house.spec(rows=4000, folds=4, epochs=4000, budget="4s"), "--wait")
        assert cut["quality"] == "DEGRADED", cut
        more = house.json("submit", "--from", cut["id"], "--budget", "6s", "--wait")
        assert more["from"] == cut["id"] and more["state"] == "SUCCEEDED", more
        assert any(d["rule"] == "from" and cut["id"] in d["cause"] for d in more["decisions"]), more["decisions"]
        before = {f["index"]: f for f in cut["folds"] if f["progress"]["done"] > 0}
        assert before
        for fold in more["folds"]:
            if fold["index"] in before:
                assert fold["from_job"] == cut["id"], fold
                done = before[fold["index"]]["progress"]["done"]
                assert fold["progress"]["done"] >= 0.5 * done, (fold, done)
        assert sum(f["progress"]["done"] for f in more["folds"]) > sum(f["progress"]["done"] for f in cut["folds"])
        assert moment(more["finished_at"]) <= moment(more["deadline"])
        house.standing(more["id"])


@case("A Job that was whole, topped up, answers the same at once")
def _():
    with House(slots=2) as house:
        house.start()
        whole = house.submit(house.spec(folds=2, epochs=4), "--wait")
        more = house.json("submit", "--from", whole["name"], "--budget", "20s", "--wait")
        assert trains(more) == [] and took(more) < 2, more
        assert sha256(more["predictions"]["path"]) == sha256(whole["predictions"]["path"])


@case("What cannot be gone on from is refused with its place")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=2), "--wait")
        gone = house.cli("submit", "--from", "nobody")
        assert gone.returncode == 5 and "nobody" in gone.stderr, gone
        other = house.cli("submit", "--from", job["id"], "--set", "data.seed=9")
        assert other.returncode == 2 and "data.seed" in other.stderr and job["id"] in other.stderr, other
        live = house.submit(house.spec(folds=2, epochs=100000, budget="60s"))
        refused = house.cli("submit", "--from", live["id"])
        assert refused.returncode != 0 and "update" in refused.stderr, refused
        both = house.cli("submit", "--from", job["id"], "--preset", "best")
        assert both.returncode == 2 and "preset" in both.stderr, both


main()
