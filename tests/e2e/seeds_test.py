"""Several models per fold (train.seeds), in the time that early stops leave."""
import os

from tests.cases import case, main
from tests.e2e.harness import House, moment, sha256


def trains(job):
    return [a["task"] for a in job["attempts"] if a["task"].startswith("fold-")]


def stopping_early(house, seeds, budget="20s", **changes):
    """Folds that run out of patience long before their 60 epochs, in about a second."""
    spec = house.spec(rows=4000, folds=3, epochs=60, budget=budget,
                      model={"mlp": {"hidden": [256, 256]}}, **changes)
    spec["train"] = {**spec["train"], "patience": 8, "seeds": seeds}
    return spec


@case("Folds that stop early leave time that further models use, and all of them predict", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(stopping_early(house, 20, budget="30s"), "--wait")
        assert (job["state"], job["end_reason"], job["quality"]) == ("SUCCEEDED", "COMPLETED", "FULL"), job
        assert moment(job["finished_at"]) <= moment(job["deadline"]), job
        firsts = [f for f in job["folds"] if f["seed"] == 0]
        further = [f for f in job["folds"] if f["seed"] > 0]
        assert [f["index"] for f in firsts] == [0, 1, 2], firsts
        assert all(f["state"] == "DONE" and f["progress"]["done"] < 60 for f in firsts), firsts
        done = [f for f in further if f["state"] == "DONE"]
        assert len(done) >= 2, further
        # Folds came first, and the Decision says what followed.
        assert sorted(trains(job)[:3]) == ["fold-0", "fold-1", "fold-2"], trains(job)
        assert trains(job)[3] == "fold-0-seed-1", trains(job)
        grown = [d for d in job["decisions"] if d["rule"] == "B9" and "models" in d["from"]]
        assert grown and grown[0]["from"] == "3 models", job["decisions"]
        report = house.job(job["id"])["report"]
        assert report["folds_done"] == report["folds_asked"] == 3, report
        assert report["models_asked"] == 60, report
        assert report["models_trained"] == len([f for f in job["folds"] if f["score"] is not None]), report
        # Most of the window was used.
        used = moment(job["finished_at"]) - moment(job["accepted_at"])
        assert used > 10, (used, job["decisions"])

        manifest = house.standing(job["id"])
        members = manifest["members"]
        assert len(members) > 3, members
        assert abs(sum(m["weight"] for m in members) - 1) < 1e-9, members
        for fold in range(3):
            of_fold = [m for m in members if m["fold"] == fold]
            assert of_fold[0]["seed"] == 0 and len({m["weight"] for m in of_fold}) == 1, of_fold
            assert abs(sum(m["weight"] for m in of_fold) - 1 / 3) < 1e-9, of_fold
        told = job["predictions"]["members"]
        assert [(m["fold"], m["seed"]) for m in told] == [(m["fold"], m["seed"]) for m in members], told
        # Their weights differ: they were not trained alike.
        assert len({m["oof_sha256"] for m in members}) == len(members), members

        # Every model answers a later file; the Job's own rows come out byte by byte.
        copy = os.path.join(house.root, "later.csv")
        again = house.json("predict", job["id"], "--data", os.path.join(house.data, "test4000.csv"),
                           "--out", copy, "--budget", "30s")
        assert (again["state"], again["quality"]) == ("SUCCEEDED", "FULL"), again
        assert len(again["predictions"]["members"]) == len(members), again["predictions"]
        steps = [(m["fold"], m["seed"], m["step"]) for m in members]
        assert [(m["fold"], m["seed"], m["step"]) for m in again["predictions"]["members"]] == steps, (
            steps, again["predictions"]["members"])
        assert sha256(copy) == job["predictions"]["sha256"] == again["predictions"]["sha256"]


@case("Without a deadline all models are trained; the first of each fold is as it is without seeds")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(folds=2, epochs=3, train={"seeds": 3})
        del spec["budget"]
        job = house.submit(spec, "--wait")
        assert job["quality"] == "FULL", job
        assert all(d["rule"] == "B7" for d in job["decisions"]), job["decisions"]  # nothing was cut
        assert sorted((f["index"], f["seed"]) for f in job["folds"]) == [
            (fold, seed) for fold in range(2) for seed in range(3)], job["folds"]
        assert all(f["state"] == "DONE" for f in job["folds"]), job["folds"]
        plain = house.submit(house.spec(folds=2, epochs=3), "--wait")
        members = house.standing(job["id"])["members"]
        for mine, theirs in zip([m for m in members if m["seed"] == 0],
                                house.standing(plain["id"])["members"]):
            assert mine["oof_sha256"] == theirs["oof_sha256"], (mine, theirs)
            assert mine["test_sha256"] == theirs["test_sha256"], (mine, theirs)


@case("The cache gives models by fold and seed, whatever number of seeds a Job asks for")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(folds=2, epochs=4, cache="use")
        first = house.submit(spec, "--wait", "--set", "train.seeds=2")
        assert len(trains(first)) == 4, first["attempts"]
        one = house.submit(spec, "--wait")
        assert trains(one) == [] and len(one["folds"]) == 2, one["folds"]
        three = house.submit(spec, "--wait", "--set", "train.seeds=3")
        assert sorted(trains(three)) == ["fold-0-seed-2", "fold-1-seed-2"], three["attempts"]
        assert [f["reused"] for f in three["folds"]] == [True] * 4 + [False] * 2, three["folds"]
        assert len(house.standing(three["id"])["members"]) >= 2, three


main()
