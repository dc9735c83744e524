"""Jobs that start after others."""
import json
import os
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


class Chain(House):
    def __enter__(self):
        super().__enter__()
        self.work = os.path.join(self.root, "work")
        os.mkdir(self.work)
        return self

    def program(self, command, *options, code=0):
        """A Job that runs a shell command: its JSON, or the text of the refusal."""
        words = [os.path.join(self.bin, "client/trainctl"), "--server", self.server, "run", "-o", "json", "--detach",
                 *options, "--", "sh", "-c", command]
        ran = subprocess.run(words, capture_output=True, text=True, env=self.environment(), cwd=self.work, timeout=100)
        assert ran.returncode == code, (words, ran)
        return json.loads(ran.stdout) if code == 0 else ran.stderr

    def ended(self, job):
        self.cli("wait", job["id"])
        return self.json("get", job["id"])


@case("A Job starts when those before it have succeeded, and its time begins then, also over a kill of traind")
def _():
    with Chain(slots=4) as house:
        house.start("--allow-programs")
        stop = os.path.join(house.root, "stop")
        first = house.program(f"until [ -f {stop} ]; do sleep 0.1; done", "--name", "first")
        other = house.program("sleep 0.5", "--name", "other")
        last = house.program("echo here", "--after", "first", "--after", other["id"], "--budget", "20s")
        assert house.cli("get", last["id"], "-o", "name").stdout == last["id"] + "\n"
        assert last["state"] == "QUEUED" and last["pending_reason"] == "OTHER_JOBS", last
        house.ended(other)
        last = eventually("one Job is left", lambda: (j := house.json("get", last["id"]))["after"] == [first["id"]] and j)
        assert last["waits_for"] == f"the end of job {first['id']}" and last["deadline"] is None, last
        house.kill_daemon()
        house.start("--allow-programs")
        waiting = house.json("get", last["id"])
        assert (waiting["state"], waiting["after"]) == ("QUEUED", [first["id"]]), waiting
        open(stop, "w").close()
        first, last = house.ended(first), house.ended(last)
        assert (first["state"], last["state"]) == ("SUCCEEDED", "SUCCEEDED"), (first, last)
        assert moment(last["started_at"]) >= moment(first["finished_at"]), (first, last)
        began = moment(last["runnable_at"])
        assert moment(first["finished_at"]) <= began <= moment(last["started_at"]), (first, last)
        assert abs(moment(last["deadline"]) - began - 20) < 0.01, last
        assert last["decisions"][0]["rule"] == "after", last


@case("Where a Job fails, those after it are cancelled, and with `end: any` they start")
def _():
    with Chain(slots=2) as house:
        house.start("--allow-programs")
        stop = os.path.join(house.root, "stop")
        first = house.program(f"until [ -f {stop} ]; do sleep 0.1; done; exit 3", "--budget", "30s")
        second = house.program("echo never", "--after", first["id"])
        third = house.program("echo never", "--after", second["id"])
        spec = house.spec(folds=2, epochs=2)
        spec["after"] = {"jobs": [first["id"]], "end": "any"}
        trains = house.submit(spec)
        open(stop, "w").close()
        second, third, trains = (house.ended(job) for job in (second, third, trains))
        for job, before in ((second, first), (third, second)):
            assert (job["state"], job["end_reason"]) == ("CANCELLED", "AFTER_FAILED"), job
            assert before["id"] in job["end_message"] and not job["attempts"], job
        assert trains["state"] == "SUCCEEDED" and trains["predictions"]["folds"], trains
        refused = house.program("true", "--after", first["id"], code=1)
        assert "FAILED" in refused and "end: any" in refused, refused


@case("A Job that nobody knows is an error with a suggestion, and a Job that waits is cancelled like others")
def _():
    with Chain(slots=1) as house:
        house.start("--allow-programs")
        first = house.program("sleep 60", "--name", "first")
        refused = house.program("true", "--after", "frist", code=2)
        assert "after.jobs" in refused and "did you mean 'first'" in refused, refused
        second = house.program("true", "--after", "first")
        house.cli("cancel", second["id"])
        assert house.ended(second)["state"] == "CANCELLED"
        assert house.json("get", first["id"])["state"] in ("QUEUED", "RUNNING", "PLANNING")


main()
