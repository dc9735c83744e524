"""The engines of traind-provision, over programs that stand in for squeue, sbatch, scancel, kubectl and ssh."""
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

from deploy.provision.traind_provision import __main__ as program
from deploy.provision.traind_provision.demand import TraindError, Traind, seen_of
from deploy.provision.traind_provision.engines import (LABEL, EngineError, Kubernetes, Slurm, Ssh, WorkerCommand)
from deploy.provision.traind_provision.plan import RUNNING, WAITING, Lent, Seen
from tests.cases import case, main


class Programs:
    """A folder in front of PATH; what its programs were called with stands in `calls`."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.path, os.environ["PATH"] = os.environ["PATH"], f"{self.root}:{os.environ['PATH']}"
        return self

    def __exit__(self, *_):
        os.environ["PATH"] = self.path
        self.folder.cleanup()

    def add(self, name, body):
        path = os.path.join(self.root, name)
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\nprintf "%s" "{name}" >>{self.root}/calls\n'
                    f'for a; do printf "|%s" "$a" >>{self.root}/calls; done; echo >>{self.root}/calls\n{body}\n')
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def calls(self, name):
        with open(os.path.join(self.root, "calls")) as f:
            return [line.split("|")[1:] for line in f.read().splitlines() if line.split("|")[0] == name]


def worker(program="trainworker", scratch="${TMPDIR:-/tmp}", arguments=("--slots", "2")):
    return WorkerCommand("mine", program, arguments, scratch, 60)


def refused(call, text):
    try:
        call()
    except EngineError as error:
        assert text in str(error), error
        return
    raise AssertionError("it was not refused")


@case("Slurm: states of squeue, what sbatch and scancel are given")
def _():
    with Programs() as fake:
        fake.add("squeue", 'printf "7|PENDING\\n8|RUNNING\\n9_1|CONFIGURING\\n10|COMPLETING\\n11|NODE_FAIL\\n"')
        fake.add("sbatch", f'cat >{fake.root}/script; echo "12;cluster"')
        fake.add("scancel", "")
        slurm = Slurm(worker(), "w-%j.log", ["--partition=gpu", "--time=4:00:00"])
        assert slurm.list() == [Lent("7", WAITING), Lent("8", RUNNING), Lent("9_1", WAITING)]
        assert slurm.submit() == "12"
        sbatch = fake.calls("sbatch")[0]
        for argument in ["--job-name=mine", "--no-requeue", "--signal=B:TERM@60", "--partition=gpu", "--time=4:00:00"]:
            assert argument in sbatch, sbatch
        with open(os.path.join(fake.root, "script")) as f:
            assert 'trainworker --slots 2 --state "$state" --lent-as "mine/$SLURM_JOB_ID"' in f.read()
        slurm.cancel(["7", "9_1"])
        assert fake.calls("scancel") == [["--state=PENDING", "7", "9_1"]]
        fake.add("sbatch", 'echo "sbatch: error: invalid partition specified: gpu" >&2; exit 1')
        refused(slurm.submit, "invalid partition")
        fake.add("squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1')
        refused(slurm.list, "Unable to contact")


@case("The script passes a SIGTERM on, waits for the Worker, and takes its folder away")
def _():
    with Programs() as fake:
        told = os.path.join(fake.root, "told")
        # A Worker that needs a second to save.
        path = fake.add("worker.sh", f'while [ "$1" != --state ]; do shift; done; state=$2; echo "$state $4" >{told}; ls -d "$state" >>{told}\n'
                                     f"trap 'sleep 1; echo saved >>{told}; exit 0' TERM\n"
                                     "while :; do sleep 0.05; done")
        scratch = os.path.join(fake.root, "scratch")
        os.mkdir(scratch)
        script = worker(path, scratch).script("x")
        process = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, text=True)
        process.stdin.write(script)
        process.stdin.close()
        until = time.monotonic() + 20
        while not os.path.exists(told) or len(open(told).read().splitlines()) < 2:
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        lines = open(told).read().splitlines()
        assert lines[0] == lines[1] + " mine/x" and lines[2] == "saved", lines
        assert os.listdir(scratch) == [], os.listdir(scratch)
        failed = subprocess.run(["sh", "-s"], input=worker("false", scratch).script("x"), text=True)
        assert failed.returncode == 1 and os.listdir(scratch) == []


def shipped_pod():
    with open("deploy/kubernetes/lent-worker.json") as f:
        return json.load(f)


_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "worker", "image": "traind-worker", "args": ["--verbose"]}]}}


@case("Kubernetes: Pods by their label; those that are over are deleted")
def _():
    with Programs() as fake:
        pods = {"items": [
            {"metadata": {"name": "p1"}, "status": {"phase": "Pending"}},
            {"metadata": {"name": "p2"}, "status": {"phase": "Running"}},
            {"metadata": {"name": "p3", "deletionTimestamp": "now"}, "status": {"phase": "Running"}},
            {"metadata": {"name": "p4"}, "status": {"phase": "Succeeded"}},
            {"metadata": {"name": "p5"}, "status": {"phase": "Failed"}}]}
        with open(os.path.join(fake.root, "pods.json"), "w") as f:
            json.dump(pods, f)
        fake.add("kubectl", f'case "$*" in *get*) cat {fake.root}/pods.json;; '
                            f'*create*) cat >{fake.root}/created; echo pod/mine-x2x;; esac')
        engine = Kubernetes(worker(), _POD, ["-n", "lab"])
        assert engine.list() == [Lent("p1", WAITING), Lent("p2", RUNNING)]
        assert fake.calls("kubectl")[-1] == ["-n", "lab", "delete", "pod", "--ignore-not-found", "--wait=false", "p4", "p5"]
        assert engine.submit() == "mine-x2x"
        with open(os.path.join(fake.root, "created")) as f:
            made = json.load(f)
        assert made["metadata"] == {"labels": {"a": "b", LABEL: "mine"}, "generateName": "mine-"}, made
        assert made["spec"]["restartPolicy"] == "Never"
        assert made["spec"]["containers"][0]["args"] == ["--verbose", "--slots", "2"], made
        shipped = Kubernetes(worker(), shipped_pod(), []).manifest()["spec"]
        container = shipped["containers"][0]
        assert container["env"][-1] == {"name": "TRAIND_LENT_AS", "value": "mine/$(POD_NAME)"}, container
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in shipped["volumes"]}
        assert shipped["terminationGracePeriodSeconds"] == 70, shipped
        engine.cancel(["p1"])
        assert fake.calls("kubectl")[-1][-1] == "p1"
        refused(Kubernetes(worker(), {"spec": {"containers": [{"name": "x"}]}}, []).submit, "container called worker")


@case("ssh: one Worker a host, found again by another provisioner, gone when it ends")
def _():
    with Programs() as fake:
        # Its hosts are folders of this machine, whose /tmp they have.
        fake.add("ssh", f'while [ "$1" != h1 ] && [ "$1" != h2 ]; do shift; done; mkdir -p {fake.root}/$1\n'
                        f'sed=$(printf "%s" "$2" | sed "s#/tmp/#{fake.root}/$1/#g"); exec sh -c "$sed"')
        path = fake.add("worker.sh", "exec sleep 60")
        engine = Ssh(worker(path, fake.root), ["h1", "h2"], ["-i", "key"])
        try:
            assert engine.list() == []
            assert [engine.submit(), engine.submit()] == ["h1", "h2"]
            refused(engine.submit, "no host is free")
            assert Ssh(worker(path), ["h2"], []).list() == [Lent("h2", RUNNING)]
            os.kill(int(open(os.path.join(fake.root, "h1", "traind-provision-mine.pid")).read()), signal.SIGTERM)
            until = time.monotonic() + 10
            while engine.list() != [Lent("h2", RUNNING)]:
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            for host in ("h1", "h2"):
                subprocess.run(["pkill", "-f", os.path.join(fake.root, "worker.sh")], check=False)
                subprocess.run(["pkill", "-f", f"{fake.root}/{host}/traind-provision"], check=False)
        assert fake.calls("ssh")[0][:6] == ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-i", "key"]


_JOBS = [
    {"state": "RUNNING", "slots": 2, "device": "", "folds": [{"state": s} for s in ["DONE", "RUNNING", "PENDING"]]},
    {"state": "QUEUED", "slots": 1, "device": "cuda", "folds": [{"state": "PENDING"}]},
    {"state": "QUEUED", "slots": 1, "device": "", "folds": [], "pending_reason": "NO_MATCHING_WORKER"},
    {"state": "QUEUED", "slots": 8, "device": "", "folds": [{"state": "PENDING"}], "pending_reason": "OTHER_JOBS"},
    {"state": "QUEUED", "slots": 8, "device": "", "folds": [{"state": "PENDING"}], "pending_reason": "QUOTA"}]
_CPU, _GPU = {"device": "cpu"}, {"device": "cuda"}
_WORKERS = [{"connected": True, "slots": [_CPU, _CPU], "lent_as": ""}, {"connected": True, "slots": [_GPU]},
            {"connected": False, "slots": [_CPU], "lent_as": "mine/6"},
            {"connected": True, "mode": "DRAINING", "slots": [_CPU], "lent_as": "mine/7"},
            {"connected": True, "slots": [], "lent_as": "mines/8"}]


@case("Slots are wanted for folds that are open, on a device that suits them")
def _():
    assert seen_of(_JOBS, _WORKERS, "cpu", "mine") == Seen(wanted=4 + 1, open=2, attached=frozenset({"7"}))
    assert seen_of(_JOBS, _WORKERS, "cuda", "other") == Seen(wanted=4 + 1 + 1, open=1)


@case("The program: a round, a dry run, and what it says where traind or the engine cannot be asked")
def _():
    with Programs() as fake:
        with open(os.path.join(fake.root, "jobs.json"), "w") as f:
            json.dump({"jobs": _JOBS}, f)
        with open(os.path.join(fake.root, "workers.json"), "w") as f:
            json.dump(_WORKERS, f)
        fake.add("trainctl", f'case "$*" in *list*) cat {fake.root}/jobs.json;; *) cat {fake.root}/workers.json;; esac')
        fake.add("squeue", "")
        fake.add("sbatch", f"cat >{fake.root}/script; echo 1")
        line = ["slurm", "--coordinator", "lead:7070", "--server", "localhost:7070", "--token", "t", "--once",
                "--worker-token", "/etc/w1.token"]
        assert program.main([*line, "--dry-run"]) == 0 and not os.path.exists(os.path.join(fake.root, "script"))
        assert program.main([*line, "--", "--time=60"]) == 0
        assert len(fake.calls("sbatch")) == 3 and "--time=60" in fake.calls("sbatch")[0]
        assert fake.calls("trainctl")[0][:4] == ["--server", "localhost:7070", "--token", "t"]
        with open(os.path.join(fake.root, "script")) as f:
            text = f.read()
        assert "--coordinator lead:7070 --slots 1 --device cpu --idle-exit 300s --stop-grace 55s" in text, text
        assert "--token /etc/w1.token" in text, text
        fake.add("trainctl", 'echo "cannot reach traind" >&2; exit 7')
        try:
            Traind("trainctl", [], "cpu", "mine").seen()
            raise AssertionError("it was asked")
        except TraindError as error:
            assert "cannot reach traind" in str(error)
        assert program.main(line) == 1
        for wrong in (["slurm"], ["slurm", "--coordinator", "a:1", "--slots", "0"], ["cloud"],
                      ["slurm", "--coordinator", "a:1", "--min", "9"]):
            ran = subprocess.run([sys.executable, "deploy/provision/traind-provision", *wrong], capture_output=True)
            assert ran.returncode == 2, (wrong, ran)


if __name__ == "__main__":
    main()
