"""A coordinator that dies for good: its archive is restored, or another machine goes on in its place."""
import json
import os
import shutil
import signal
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, eventually
from tests.e2e.hosts import Host


@case("What an archive has is restored with its Jobs, answers and histories, without the machine that made it",
      limit_s=150)
def _():
    with House(slots=1) as house:
        artifacts = os.path.join(house.root, "artifacts")
        house.start("--artifacts", artifacts)
        done = house.submit(house.spec(rows=150, folds=2, epochs=2, budget="40s"))["id"]
        job = house.wait(done)
        with open(job["predictions"]["path"]) as f:
            before = f.read()
        events = house.json("events", done)
        live = house.submit(house.spec(rows=3000, folds=2, budget="60s", train={"epochs": 100000}))["id"]
        house.until_saved(live)
        told = max(a["id"] for a in house.job(live)["attempts"])
        house.kill_all("traind", "trainworker", "trainrank", "trainprep")
        house.daemon.wait()
        shutil.rmtree(house.state)
        house.start("--restore", artifacts)
        assert not os.path.islink(os.path.join(house.state, "jobs"))
        job = house.job(done)
        assert job["state"] == "SUCCEEDED", job
        with open(job["predictions"]["path"]) as f:
            assert f.read() == before
        assert house.json("events", done) == events
        house.until(live, "it goes on in an Attempt that nobody has heard of", lambda j: any(
            a["id"] > told + 1000 for a in j["attempts"]))
        assert house.finish(live)["state"] == "SUCCEEDED"
        over = subprocess.run([os.path.join(house.bin, "server/traind"), "--state", house.state, "--listen",
                               "127.0.0.1:0", "--data-root", house.data, "--restore", artifacts],
                              capture_output=True, text=True, timeout=20, env=house.environment())
        assert over.returncode != 0, over


@case("A standby takes over from a traind that is killed; Workers and Jobs go on, and the dead one comes back as standby",
      limit_s=200)
def _():
    with House(standalone=False) as house:
        artifacts = os.path.join(house.root, "artifacts")
        house.state = artifacts  # the files of Jobs are there
        flags = ["--artifacts", artifacts, "--standby"]
        one, two = Host(house, "one").start(*flags).until("ready"), Host(house, "two").start(*flags)
        two.until("standby")
        # Without --standby, a second one is refused.
        third = Host(house, "third").start("--artifacts", artifacts)
        assert third.process.wait(10) == 3
        house.server = f"{one.address},{two.address}"
        worker = house.start_worker(slots=1, state=os.path.join(house.root, "own"))
        house.server = one.address
        job = house.submit(house.spec(rows=3000, folds=2, budget="90s", train={"epochs": 100000}))["id"]
        house.until_saved(job, limit_s=40)
        # Its files are the client's own, which the next traind has as well.
        desk = os.path.join(house.root, "desk")
        os.mkdir(desk)
        spec = house.spec(rows=150, folds=2, epochs=2, budget="80s")
        for name in (spec["data"]["train"], spec["data"]["test"]):
            shutil.move(os.path.join(house.data, name), desk)
        with open(os.path.join(desk, "job.yaml"), "w") as f:
            json.dump(spec, f)
        later = house.json("submit", "-f", os.path.join(desk, "job.yaml"), "--upload")["id"]
        one.end(signal.SIGKILL)
        two.until("ready")
        house.server = f"{one.address},{two.address}"  # trainctl looks where one is, too
        assert {j["id"] for j in house.json("list")["jobs"]} == {job, later}
        # It is the same process that trains on.
        attempts = {a["id"] for a in house.job(job)["attempts"]}
        eventually("the Worker is there", lambda: any(w["connected"] for w in house.json("workers")), 20)
        assert {a["id"] for a in house.job(job)["attempts"]} == attempts
        one.start(*flags).until("standby")
        house.server = two.address
        assert house.finish(job)["state"] == "SUCCEEDED"
        two.end(signal.SIGTERM)  # released: no need to wait
        one.until("ready")
        house.check_folds_answer(house.wait(later, limit_s=80))
        assert house.job(job)["state"] == "SUCCEEDED"
        worker.send_signal(signal.SIGTERM)
        worker.wait(20)
        one.end(signal.SIGTERM)


@case("A traind that was asleep while another took over acknowledges nothing and ends", limit_s=100)
def _():
    with House(standalone=False) as house:
        artifacts = os.path.join(house.root, "artifacts")
        flags = ["--artifacts", artifacts, "--standby", "--takeover-after", "2s"]
        one, two = Host(house, "one").start(*flags).until("ready"), Host(house, "two").start(*flags).until("standby")
        spec = house.write_spec(house.spec(rows=150, folds=2))
        house.server = one.address
        first = house.json("submit", "-f", spec)["id"]
        one.process.send_signal(signal.SIGSTOP)
        two.until("ready")
        late = subprocess.Popen(
            [os.path.join(house.bin, "client/trainctl"), "--server", one.address, "--timeout", "15s", "submit", "-f",
             spec, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=house.environment())
        one.process.send_signal(signal.SIGCONT)
        assert one.process.wait(20) == 1
        out, error = late.communicate(timeout=40)
        assert late.returncode != 0, (out, error)
        assert [j["id"] for j in house.json("list")["jobs"]] == [first]
        second = house.json("submit", "-f", spec, "--request-id", "again")["id"]
        assert json.loads(house.cli("get", second, "-o", "json").stdout)["id"] == second
        two.end(signal.SIGTERM)


main()
