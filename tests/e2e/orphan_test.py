"""A Worker whose traind is gone for good. Most of this test waits for the Worker to go, so it runs beside others."""
import os
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


main()
