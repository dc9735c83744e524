"""Artifacts in a bucket (`--artifacts s3://BUCKET/PREFIX`): another machine goes on with nothing but the bucket.

The bucket is tests/s3/bucket.py, or that of TRAIND_TEST_S3 (tests/s3/run.sh starts a real store)."""
import os
import shutil
import signal
import subprocess
import time
import uuid

from tests.cases import case, main
from tests.e2e.harness import House, eventually, sha256
from tests.e2e.hosts import Host
from tests.s3 import bucket


class Bucket:
    """One of its own for a case, by the variables that traind reads."""

    def __enter__(self):
        given = os.environ.get("TRAIND_TEST_S3")
        self.server = None if given else bucket.start(page=7)
        if self.server:
            os.environ.update(bucket.environment(self.server.server_address[1]))
        self.place = f"{given or 's3://bucket'}/{uuid.uuid4().hex[:8]}"
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.shutdown()

    def keys(self, prefix):
        """None where only the store knows."""
        own = self.place.split("/", 3)[3] + "/"
        return None if self.server is None else [k[len(own):] for k in self.server.bucket.objects
                                                 if k.startswith(own + prefix)]


def answer(house, job):
    """The digest of the standing prediction, as trainctl fetches it."""
    target = os.path.join(house.root, f"fetched-{uuid.uuid4().hex[:6]}.csv")
    result = house.cli("fetch", job, "--to", target)
    assert result.returncode == 0, result.stderr
    return sha256(target)


@case("A machine is lost with its disk: the same command elsewhere has its Jobs, answers and histories, and trains on",
      limit_s=150)
def _():
    with Bucket() as there, House(slots=1) as house:
        flags = ["--standalone", "--slots", "1", "--artifacts", there.place, "--standby"]
        one = Host(house, "one").start(*flags).until("ready", 30)
        house.state = one.state
        done = house.submit(house.spec(rows=150, folds=2, epochs=2, budget="40s"))["id"]
        assert house.wait(done)["state"] == "SUCCEEDED"
        before, events = answer(house, done), house.json("events", done)
        live = house.submit(house.spec(rows=3000, folds=2, budget="90s", train={"epochs": 100000}))["id"]
        house.until_saved(live)
        if there.server:
            eventually("the bucket has a checkpoint",
                       lambda: any("checkpoint-" in k for k in there.keys(f"jobs/{live}/")), 20)
        else:
            time.sleep(5)
        told = max(a["id"] for a in house.job(live)["attempts"])
        house.kill_all("traind", "trainworker", "trainrank", "trainprep")
        one.process.wait()
        shutil.rmtree(one.state)
        # Once the lease of the dead one has run out.
        two = Host(house, "two").start(*flags).until("ready", 40)
        assert house.job(done)["state"] == "SUCCEEDED"
        assert answer(house, done) == before
        assert house.json("events", done) == events
        job = house.until(live, "it goes on in an Attempt that nobody has heard of", lambda j: any(
            a["id"] > told + 1000 and a["first_step"] is not None for a in j["attempts"]))
        assert any(a["id"] > told and a["first_step"] for a in job["attempts"]), job["attempts"]  # not from 0
        assert house.finish(live)["state"] == "SUCCEEDED"
        two.end(signal.SIGTERM)
        # --restore makes a state folder that goes its own way.
        house.start("--restore", there.place, state=os.path.join(house.root, "restored"))
        assert {j["id"] for j in house.json("list")["jobs"]} == {done, live}
        assert answer(house, done) == before


@case("A standby takes over from a traind that is killed; no folder is shared, and the Worker's fold goes on", limit_s=200)
def _():
    with Bucket() as there, House(standalone=False) as house:
        flags = ["--artifacts", there.place, "--standby"]
        one, two = Host(house, "one").start(*flags).until("ready"), Host(house, "two").start(*flags)
        two.until("standby")
        third = Host(house, "third").start("--artifacts", there.place)
        assert third.process.wait(20) == 3
        house.server = f"{one.address},{two.address}"
        worker = house.start_worker(slots=1, state=os.path.join(house.root, "own"))
        house.server = one.address
        job = house.submit(house.spec(rows=3000, folds=2, budget="90s", train={"epochs": 100000}))["id"]
        house.until(job, "a fold trains", lambda j: any(a["first_step"] is not None for a in j["attempts"]), 60)
        one.end(signal.SIGKILL)
        two.until("ready", 30)
        attempts = {a["id"] for a in house.job(job)["attempts"]}
        eventually("the Worker is there", lambda: any(w["connected"] for w in house.json("workers")), 20)
        assert {a["id"] for a in house.job(job)["attempts"]} == attempts
        one.start(*flags).until("standby", 30)
        house.server = two.address
        assert house.finish(job)["state"] == "SUCCEEDED"
        before = answer(house, job)
        two.end(signal.SIGTERM)  # released, with all files
        one.until("ready", 30)
        assert house.job(job)["state"] == "SUCCEEDED"
        assert answer(house, job) == before
        worker.send_signal(signal.SIGTERM)
        worker.wait(20)
        one.end(signal.SIGTERM)


@case("A traind that cannot reach its bucket acknowledges nothing and ends; what it acknowledged is there", limit_s=100)
def _():
    with Bucket() as there, House(standalone=False) as house:
        if there.server is None:
            return
        flags = ["--artifacts", there.place, "--takeover-after", "2s"]
        one = Host(house, "one").start(*flags).until("ready")
        spec = house.write_spec(house.spec(rows=150, folds=2))
        first = house.json("submit", "-f", spec)["id"]
        there.server.bucket.faults["away"] = True
        late = house.cli("--timeout", "10s", "submit", "-f", spec, "-o", "json")
        assert late.returncode != 0, late.stdout
        assert one.process.wait(20) == 1
        there.server.bucket.faults["away"] = False
        two = Host(house, "two").start(*flags, "--standby").until("ready", 30)
        assert [j["id"] for j in house.json("list")["jobs"]] == [first]
        two.end(signal.SIGTERM)


@case("What is wrong about a bucket is told in one line, with exit code 2 or 1", limit_s=60)
def _():
    with Bucket() as there, House() as house:
        if there.server is None:
            return

        def start(place, **environment):
            return subprocess.run(
                [os.path.join(house.bin, "server/traind"), "--state", house.state, "--listen", "127.0.0.1:0", "--data-root",
                 house.data, "--artifacts", place], capture_output=True, text=True, timeout=30,
                env={**house.environment(), **environment})
        wrong = start("s3://Bucket/x")
        assert wrong.returncode == 2 and "small letters" in wrong.stderr, wrong
        for place, environment, text in (
                (there.place, {"AWS_SECRET_ACCESS_KEY": "other"}, "SignatureDoesNotMatch"),
                (there.place, {"AWS_ACCESS_KEY_ID": "", "HOME": house.root}, "AWS_ACCESS_KEY_ID"),
                ("s3://another/x", {}, "NoSuchBucket")):
            wrong = start(place, **environment)
            assert wrong.returncode == 1 and text in wrong.stderr, (place, wrong)
        there.server.bucket.faults["ignore_once"] = True
        wrong = start(there.place)
        assert wrong.returncode == 1 and "If-None-Match" in wrong.stderr, wrong


main()
