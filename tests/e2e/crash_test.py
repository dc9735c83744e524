"""Processes die in mid-training; the Prediction comes all the same, in time."""
import os
import random
import signal
import time

from tests.cases import case, main
from tests.e2e.harness import ENDED, House, eventually, moment


def endless(house, budget, folds=2, **changes):
    """A Job that trains until its budget is used up, with frequent checkpoints."""
    train = {"epochs": 100000, "checkpoint_every": "500ms"}
    spec = house.spec(rows=3000, folds=folds, budget=budget, **{**changes, "train": train})
    if budget is None:  # until it is told to finish
        del spec["budget"]
    return spec


def several(house, budget, folds, epochs, **train):
    """A Job of folds that take a second or two each."""
    return house.spec(rows=4000, folds=folds, epochs=epochs, budget=budget,
                      train={"epochs": epochs, "checkpoint_every": "60s", **train})


def trains(job):
    return any(f["state"] == "RUNNING" and f["progress"]["done"] >= 1 for f in job["folds"])


def strike(house, job, blow):
    """Two blows, each once a checkpoint is there. The slots may go to the other fold after the
    first: of two folds, one is back after the second, and has to go on from its checkpoint."""
    for _ in range(2):
        job = house.until_saved(job["id"], 60)
        struck = max(a["id"] for a in job["attempts"])
        blow()
        job = house.until(job["id"], "a later Attempt trains", lambda j: any(
            a["id"] > struck and a["first_step"] is not None for a in j["attempts"]), 50)
    house.check_resumed(job)
    return [a["end_reason"] for a in job["attempts"] if a["task"].startswith("fold-")]


def finish(house, job):
    house.json("finish", job["id"])
    job = house.wait(job["id"], 30)
    assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job
    house.check_predictions(job["predictions"]["path"])
    return job


def table_mapped(pid):
    """A Rank that trains has its table mapped; a spare has none."""
    try:
        with open(f"/proc/{pid}/maps") as f:
            return ".table" in f.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def answered(house, job, rows=120):
    assert job["state"] == "SUCCEEDED", job
    assert moment(job["finished_at"]) <= moment(job["deadline"]), (job["finished_at"], job["deadline"])
    house.check_predictions(job["predictions"]["path"], rows)
    assert house.standing(job["id"]), job


@case("traind killed: the Worker trains on, and the next traind adopts its Ranks")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(endless(house, None))
        before = house.until(job["id"], "it trains", trains)
        worker = list(house.processes("trainworker"))
        house.kill_daemon()
        assert list(house.processes("trainworker")) == worker
        time_out = time.monotonic() + 2  # away for a while: the outage itself, not a wait for something
        while time.monotonic() < time_out:
            assert house.processes("trainrank"), "the Ranks are gone"
            time.sleep(0.1)
        house.start()
        assert list(house.processes("trainworker")) == worker
        after = house.until(job["id"], "the fold goes on", lambda j: j["folds"][0]["progress"]["done"] >
                            before["folds"][0]["progress"]["done"], 10)
        assert len(after["attempts"]) == len(before["attempts"]), after["attempts"]
        job = finish(house, job)
        folds = [a for a in job["attempts"] if a["task"] == "fold-0"]
        assert len(folds) == 1, job["attempts"]


@case("A killed Rank: the fold goes on from its checkpoint", limit_s=180)
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(endless(house, None))
        ends = strike(house, job, lambda: house.kill_running("trainrank"))
        assert ends[:2] == ["RANK_DIED", "RANK_DIED"], ends
        finish(house, job)


@case("One Rank of two killed: the gang ends within seconds and goes on from its checkpoint", limit_s=180)
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(endless(house, None, resources={"slots": 2}))

        def blow():
            house.kill(eventually("a Rank has the table mapped", lambda: next(
                (p for p in house.processes("trainrank") if table_mapped(p)), None), 10))
        ends = strike(house, job, blow)
        assert ends[:2] == ["RANK_DIED", "RANK_DIED"], ends
        finish(house, job)


@case("A killed Worker is started again and the fold goes on from its checkpoint", limit_s=180)
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(endless(house, None))

        def blow():
            old = list(house.processes("trainworker"))
            for pid in old:
                house.kill(pid)
            eventually("a new Worker", lambda: set(house.processes("trainworker")) - set(old), 20)
        strike(house, job, blow)
        finish(house, job)


@case("Worker and Ranks killed in fold 3 before its checkpoint, none returns: two models answer")
def _():
    with House(slots=1, private_binaries=True) as house:
        house.start()
        # Wide enough that no machine is through with a fold between two looks.
        spec = several(house, "45s", folds=5, epochs=20)
        job = house.submit({**spec, "model": {"mlp": {"hidden": [512, 512]}}})

        def third(j):
            folds = j["folds"]
            return (folds[0]["state"], folds[1]["state"], folds[2]["state"]) == ("DONE", "DONE", "RUNNING")
        house.until(job["id"], "fold 3 trains", third)
        os.rename(os.path.join(house.bin, "worker/trainworker"), os.path.join(house.bin, "worker/gone"))
        house.kill_all("trainworker", "trainrank")
        house.json("finish", job["id"])
        job = house.wait(job["id"], 60)
        answered(house, job)
        assert job["predictions"]["folds"] == [0, 1], job["predictions"]
        assert job["quality"] == "DEGRADED" and not job["scores"]["comparable"], job
        assert [m["fold"] for m in house.standing(job["id"])["members"]] == [0, 1]


@case("Worker and Rank that hang do not hold up the answer")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(several(house, "12s", folds=3, epochs=100000))
        house.until(job["id"], "it trains", trains)
        hung = list(house.processes("trainworker")) + list(house.processes("trainrank"))
        for pid in hung:
            house.kill(pid, signal.SIGSTOP)
        try:
            answered(house, house.wait(job["id"], 20))
        finally:
            for pid in hung:
                house.kill(pid, signal.SIGCONT)


@case("A Worker that is started by hand trains; when it goes, another one goes on from the checkpoint",
      limit_s=240)
def _():
    with House(standalone=False) as house:
        house.start()
        job = house.submit(endless(house, None))
        house.start_worker()

        def blow():
            house.kill_all("trainworker")
            eventually("its Ranks are gone with it", lambda: not house.processes("trainrank"), 10)
            house.start_worker()
        strike(house, job, blow)
        finish(house, job)


@case("SIGTERM publishes and leaves no process; the next traind resumes and completes")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(several(house, "2m", folds=3, epochs=600, patience=0))
        house.until(job["id"], "fold 2 trains", lambda j: j["folds"][1]["progress"]["done"] >= 1)
        assert house.kill_daemon(15) == 0
        eventually("no process is left", lambda: not house.processes(), 5)
        assert 0 in [m["fold"] for m in house.standing(job["id"])["members"]]
        house.start()
        job = house.wait(job["id"], 45)
        answered(house, job)
        house.check_resumed(job)
        assert job["quality"] == "FULL" and job["predictions"]["folds"] == [0, 1, 2], job


@case("SIGTERM right after the start leaves no process either")
def _():
    for _ in range(3):
        with House(slots=1) as house:
            house.start()
            assert house.kill_daemon(15) == 0
            eventually("no process is left", lambda: not house.processes(), 5)


@case("A state folder that was copied elsewhere goes on there")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(several(house, "2m", folds=2, epochs=1500, patience=0))
        house.until(job["id"], "it trains", trains)
        assert house.kill_daemon(15) == 0
        elsewhere = os.path.join(house.root, "elsewhere")
        os.rename(house.state, elsewhere)
        house.start(state=elsewhere)
        house.state = elsewhere
        job = house.wait(job["id"], 45)
        answered(house, job)
        house.check_resumed(job)
        assert job["predictions"]["path"].startswith(elsewhere), job["predictions"]


@case("Each of twenty acknowledged Jobs is there after kill -9, and ends")
def _():
    with House(slots=2) as house:
        house.start()
        path = house.write_spec(house.spec(folds=2, epochs=1, budget="60s"))
        ids = [house.json("submit", "-f", path, "--request-id", f"r{i}")["id"] for i in range(20)]
        house.kill_daemon()
        house.start()
        assert {j["id"] for j in house.json("list")["jobs"]} == set(ids)
        for i in ids:
            assert house.wait(i, 60)["state"] == "SUCCEEDED"


@case("Whatever is killed at random, there is an answer before the deadline", limit_s=120)
def _():
    chance = random.Random(5)
    with House(slots=2) as house:
        house.start()
        job = house.submit(endless(house, "30s", folds=3))
        end = time.monotonic() + 15
        while time.monotonic() < end:
            pause = time.monotonic() + chance.uniform(0.3, 2.5)
            eventually("the next stroke", lambda: time.monotonic() > pause, 5)
            program = chance.choice(["traind", "trainworker", "trainrank", "trainprep"])
            if program == "traind":
                house.kill_daemon()
                house.start()
            else:
                for pid in list(house.processes(program))[:1]:
                    house.kill(pid)
        job = house.wait(job["id"], 45)
        assert job["state"] in ENDED
        answered(house, job)
        house.check_resumed(job, at_least=0, all_told=False)


main()
