"""Networks that are slow and narrow and break at any moment, between a Worker, traind and trainctl."""
import hashlib
import json
import os
import threading

from tests.cases import case, main
from tests.e2e.harness import House, moment
from tests.e2e.links import Link

SENT = """api: v1
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: test.csv, target: kind}
model: {mlp: {hidden: [8]}}
budget: {time: 60s}
"""


class Owner(threading.Thread):
    """Submits a Job and follows it to its end, over a bad link; begins again under the same id where trainctl gives up."""

    def __init__(self, house, server, key):
        super().__init__(daemon=True)
        self.house, self.server, self.key = house, server, key
        self.spec = house.write_spec(house.spec(rows=150, folds=2, epochs=4, budget="60s", name=key), f"{key}.yaml")
        self.tries, self.job, self.events, self.error = 0, None, [], None

    def ask(self, *arguments):
        for _ in range(20):
            self.tries += 1
            told = self.house.cli(*arguments, server=self.server)
            if told.returncode == 0:
                return told.stdout
        raise AssertionError(told)

    def run(self):
        try:
            submit = ("submit", "-f", self.spec, "--request-id", self.key, "-o", "json")
            self.job = json.loads(self.ask(*submit))["id"]
            self.ask("wait", self.job)
            self.events = json.loads(self.ask("events", self.job, "-o", "json"))
            assert json.loads(self.ask(*submit))["id"] == self.job
        except Exception as e:
            self.error = e


def check_attempts(job):
    """A task has another Attempt only where the one before had ended, for a reason."""
    last = {}
    for attempt in sorted(job["attempts"], key=lambda a: a["id"]):
        before = last.get(attempt["task"])
        if before:
            print(f"{job['name']}: {before['task']} again: {before['end_reason']}, {before['message']}", flush=True)
            assert before["end_reason"] in ("WORKER_LOST", "RANK_DIED", "COLLECTIVE_TIMEOUT", "HUNG"), job["attempts"]
            assert moment(before["ended_at"]) <= moment(attempt["started_at"]), job["attempts"]
        last[attempt["task"]] = attempt
    return len(job["attempts"]) - len(last)


@case("trainctl connects over a link that takes 800 ms there and back, at the first try")
def _():
    with House(standalone=False) as house:
        house.start()
        with Link(house.server, "far", (60, 60), latency_s=0.4) as link:
            told = house.cli("list", server=link.address)
            print(link, flush=True)
            assert told.returncode == 0, told
            assert link.connections == 1, str(link)


@case("A file of 600 kB arrives over a link of 64 kB/s that breaks every few seconds")
def _():
    with House(standalone=False) as house:
        house.start()
        text = "a,b,kind\n" + "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(40000))
        spec = os.path.join(house.root, "desk", "job.yaml")
        os.mkdir(os.path.dirname(spec))
        for name, content in (("train.csv", text), ("test.csv", "a,b\n1,2\n"), ("job.yaml", SENT)):
            with open(os.path.join(os.path.dirname(spec), name), "w", encoding="utf-8") as f:
                f.write(content)
        with Link(house.server, "upload", (3, 6)) as link:
            told = house.cli("plan", "-f", spec, "--upload", server=link.address)
            print(link, told.stderr, flush=True)
            assert told.returncode == 0, told
            assert link.resets >= 1, str(link)
            assert link.bytes < 2.5 * len(text), f"what came was sent again: {link}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        with open(os.path.join(house.state, "uploads", digest, "train.csv"), encoding="utf-8") as f:
            assert f.read() == text


@case("Over a link of 200 ms and 64 kB/s that breaks every few seconds, Jobs are answered in time and nothing is done twice",
      limit_s=150)
def _():
    with House(standalone=False) as house:
        house.start()
        direct = house.server
        with Link(direct, "worker", (1.5, 6)) as of_worker, Link(direct, "trainctl", (1, 4)) as of_client:
            house.server = of_worker.address
            house.start_worker(2, os.path.join(house.root, "worker"))  # files travel, too
            house.server = direct
            owners = [Owner(house, of_client.address, f"job-{i}") for i in range(2)]
            for owner in owners:
                owner.start()
            for owner in owners:
                owner.join()
            print(f"the Worker's link: {of_worker}\ntrainctl's link: {of_client}\n"
                  f"{sum(o.tries for o in owners)} calls of trainctl", flush=True)
            assert [o.error for o in owners] == [None] * 2, [o.error for o in owners]
            # A run in which nothing broke proves nothing.
            assert of_worker.resets >= 3 and of_client.resets >= 1, (str(of_worker), str(of_client))
            assert of_worker.bytes > 50000 and of_worker.slices > 200, str(of_worker)
            again = 0
            assert sorted(j["id"] for j in house.json("list")["jobs"]) == sorted(o.job for o in owners)
            for owner in owners:
                job = house.job(owner.job)
                assert job["state"] == "SUCCEEDED" and job["name"] == owner.key, job
                assert moment(job["finished_at"]) <= moment(job["deadline"]), job
                assert job["predictions"]["folds"], job  # models answer, not the floor
                house.check_predictions(job["predictions"]["path"])
                assert house.standing(job["id"])["quality"] == job["quality"], job
                again += check_attempts(job)
                assert owner.events == house.json("events", job["id"])
                took = moment(job["finished_at"]) - moment(job["accepted_at"])
                print(f"{owner.key} took {took:.1f} s, its quality is {job['quality']}", flush=True)
            print(f"{again} Attempts were tried again", flush=True)


main()
