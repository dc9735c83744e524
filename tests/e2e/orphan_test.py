"""A Worker whose traind is gone for good, and one that traind has given up. Most of these tests is waiting, so they
run beside others."""
import os
import signal
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


@case("traind killed for good: at the deadline the folder holds the answer, then the Worker goes",
      limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(rows=4000, folds=3, epochs=20, budget="14s", train={"epochs": 20, "checkpoint_every": "60s"})
        job = house.submit(spec)
        house.until(job["id"], "fold 1 is done", lambda j: j["folds"][0]["state"] == "DONE")
        house.kill_daemon()
        eventually("the deadline", lambda: time.time() > moment(job["deadline"]), 20)
        manifest = house.standing(job["id"])
        assert manifest["quality"] in ("FULL", "DEGRADED"), manifest
        stamp = os.stat(os.path.join(house.results(job["id"]), "current/manifest.json")).st_mtime
        assert stamp <= moment(job["deadline"]), (stamp, job["deadline"])
        members = [m["fold"] for m in manifest["members"]]
        assert 0 in members and len(members) >= 2, manifest  # it went on without traind
        house.check_predictions(os.path.join(house.results(job["id"]), "current/predictions.csv"))
        eventually("the Worker has ended by itself", lambda: not house.processes(), 80)
        # A traind that starts later finds the same answer.
        house.start()
        job = house.wait(job["id"], 10)
        assert job["state"] == "SUCCEEDED", job
        assert moment(job["finished_at"]) <= moment(job["deadline"]), job
        house.check_predictions(job["predictions"]["path"])
        assert sorted(job["predictions"]["folds"]) == sorted(members), (job["predictions"], manifest)


def trains_a_table(pid):
    """Whether the Rank has a table mapped; a spare has none."""
    try:
        with open(f"/proc/{pid}/maps") as f:
            return ".table" in f.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


@case("A Worker that slept for longer than a lease wakes: its fold trains elsewhere, and its own Ranks of it end",
      limit_s=180)
def _():
    with House(standalone=False) as house:
        house.start()
        house.start_worker(state=os.path.join(house.root, "one"))
        spec = house.spec(rows=3000, folds=2, train={"epochs": 100000, "checkpoint_every": "500ms"})
        del spec["budget"]
        job = house.submit(spec)["id"]
        trains = house.until(job, "it trains", lambda j: any(f["progress"]["done"] >= 1 for f in j["folds"]))
        struck = max(trains["attempts"], key=lambda a: a["id"])
        ranks = {pid for pid in house.processes("trainrank") if trains_a_table(pid)}
        assert ranks, house.processes()
        asleep = list(house.processes("trainworker")) + list(house.processes("trainrank"))
        for pid in asleep:
            house.kill(pid, signal.SIGSTOP)
        try:
            house.start_worker(2, os.path.join(house.root, "two"))
            house.until(job, "the fold is given up and trains elsewhere", lambda j: any(
                a["id"] > struck["id"] and a["task"] == struck["task"] and a["first_step"] is not None
                for a in j["attempts"]), 60)
        finally:
            for pid in asleep:
                house.kill(pid, signal.SIGCONT)
        eventually("its Ranks of the fold have ended", lambda: not ranks & set(house.processes("trainrank")), 30)
        eventually("the Worker is back", lambda: [w["connected"] for w in house.json("workers")] == [True, True], 30)
        attempts = house.job(job)["attempts"]
        [given_up] = [a for a in attempts if a["id"] == struck["id"]]
        assert given_up["end_reason"] == "WORKER_LOST", attempts
        ended = house.finish(job)
        assert ended["state"] == "SUCCEEDED" and ended["predictions"]["folds"], ended
        house.check_predictions(ended["predictions"]["path"])
        assert len({a["worker"] for a in ended["attempts"] if a["task"] == struck["task"]}) == 2, ended["attempts"]


main()
