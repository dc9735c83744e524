"""The real binaries, on loopback, each test in a state folder of its own.

    with House(slots=2) as house:
        house.start()
        job = house.submit(house.spec(epochs=5), "--wait")

House knows every process that it caused: each carries MARK in its environment,
whoever started it. At the end all must be gone by themselves once traind was told
to stop; whatever is left is killed and fails the case.
"""
import csv
import datetime
import glob
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

MARK = "TRAIND_TEST_HOUSE"
PROGRAMS = ("server/traind", "worker/trainworker", "worker/trainrank", "worker/trainprep",
            "worker/traintree", "worker/trainprog", "client/trainctl")
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


def binaries():
    """The folder that holds server/traind and the others."""
    if os.environ.get("TRAIND_BIN"):
        return os.path.abspath(os.environ["TRAIND_BIN"])
    return os.getcwd() if os.environ.get("TEST_SRCDIR") else os.path.join(os.getcwd(), "bazel-bin")


def eventually(what, function, limit_s=30.0):
    """Polls until function() is true; its value. Fails with `what` after limit_s."""
    end = time.monotonic() + limit_s
    while True:
        value = function()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.05)


def moment(text):
    """Seconds since the epoch of an RFC 3339 time."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.reader(f))


class House:
    """A state folder, a folder of data, and the daemons on them."""

    def __init__(self, slots=1, standalone=True, private_binaries=False):
        self.slots = slots
        self.standalone = standalone
        self.root = tempfile.mkdtemp(prefix="traind-e2e-")
        self.state = os.path.join(self.root, "state")
        self.data = os.path.join(self.root, "data")
        self.mark = uuid.uuid4().hex
        self.bin = binaries()
        self.server = None
        self.http = None  # the address of the HTTP port
        self.daemon = None
        self.workers_started = []
        os.mkdir(self.state)
        os.mkdir(self.data)
        if private_binaries:  # so that a test may take one away
            self.bin = os.path.join(self.root, "bin")
            for program in PROGRAMS:
                target = os.path.join(self.bin, program)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                source = os.path.realpath(os.path.join(binaries(), program))
                shutil.copy(source, target)
            # The library that a Rank loads where there is a GPU lies beside it.
            folder = os.path.dirname(os.path.realpath(os.path.join(binaries(), "worker/trainrank")))
            for name in os.listdir(folder):
                if name.endswith(".so"):
                    shutil.copy(os.path.join(folder, name), os.path.join(self.bin, "worker", name))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        left = []
        try:
            for worker in self.workers_started:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGTERM)
            if self.daemon and self.daemon.poll() is None:
                self.daemon.send_signal(signal.SIGTERM)
                try:
                    self.daemon.wait(20)
                except subprocess.TimeoutExpired:
                    left.append("traind did not end within 20 s of SIGTERM")
            if error is None and not left:
                try:
                    eventually("every process is gone", lambda: not self.processes(), 15)
                except AssertionError:
                    left += [f"left behind: {p}" for p in self.processes().items()]
        finally:
            for pid in self.processes():
                self.kill(pid)
            for process in self.workers_started + [self.daemon]:
                if process:
                    process.wait()
            if error is not None or left:
                self.tell()
            shutil.rmtree(self.root, ignore_errors=True)
        assert error is not None or not left, left

    def tell(self):
        """Prints the ends of the logs, for whoever reads a failed test."""
        for name in sorted(os.listdir(self.root)):
            if name.endswith(".log"):
                with open(os.path.join(self.root, name), errors="replace") as f:
                    print(f"---- {name}\n" + "".join(f.readlines()[-40:]), flush=True)

    # ---- processes

    def environment(self):
        return {**os.environ, MARK: self.mark}

    def start(self, *arguments, state=None, limit_s=20, listen="127.0.0.1:0"):
        """Starts traind and waits until it is ready."""
        state = state or self.state
        log = open(os.path.join(self.root, "traind.log"), "a")
        command = [os.path.join(self.bin, "server/traind"), "--state", state, "--listen",
                   listen, "--data-root", self.data, *arguments]
        if self.standalone:
            command += ["--standalone", "--slots", str(self.slots)]
        self.daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log,
                                       env=self.environment(), cwd=self.root, start_new_session=True)
        log.close()
        line = self._first_line(limit_s)
        assert line.startswith("traind ready grpc="), (line, self.daemon.poll())
        fields = dict(word.split("=", 1) for word in line.split()[2:])
        assert int(fields["pid"]) == self.daemon.pid, line
        self.server = fields["grpc"]
        self.http = fields["http"]
        return self

    def start_worker(self, slots=1, state=None, prefix=(), arguments=(), server=None):
        """A trainworker of its own, for a house that is not standalone; in the folder `state` if one
        is given. prefix: a command that becomes it. server: a way to traind, if not its address."""
        with open(os.path.join(self.root, "worker.log"), "a") as log:
            self.workers_started.append(subprocess.Popen(
                [*prefix, os.path.join(self.bin, "worker/trainworker"), "--state", state or self.state,
                 "--coordinator", server or self.server, "--slots", str(slots), *arguments], stdout=log, stderr=log,
                env=self.environment(), cwd=self.root, start_new_session=True))
        return self.workers_started[-1]

    def _first_line(self, limit_s):
        os.set_blocking(self.daemon.stdout.fileno(), False)
        text = b""

        def read():
            nonlocal text
            text += self.daemon.stdout.read() or b""
            return b"\n" in text or self.daemon.poll() is not None
        try:
            eventually("traind says that it is ready", read, limit_s)
        except AssertionError:
            self.tell()
            raise
        return text.decode().split("\n")[0]

    def processes(self, program=None):
        """pid -> command line of what this house caused and still runs."""
        found = {}
        needle = f"{MARK}={self.mark}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    ours = needle in f.read().split(b"\0")
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    command = f.read().decode(errors="replace").split("\0")
                # Also what was started with an environment of its own.
                if not ours and not any(self.root in part for part in command):
                    continue
                with open(f"/proc/{entry}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        continue
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if program is None or os.path.basename(command[0]) == program:
                found[int(entry)] = " ".join(command).strip()
        return found

    def kill(self, pid, number=signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def kill_all(self, *programs):
        """kill -9 of every process of these programs, until none is left."""
        def again():
            victims = [p for name in programs for p in self.processes(name)]
            for pid in victims:
                self.kill(pid)
            return not victims
        eventually(f"{programs} are dead", again, 10)

    def kill_running(self, *programs):
        """kill -9 of the processes of these programs that run now; those that take their place live."""
        victims = {p for name in programs for p in self.processes(name)}
        for pid in victims:
            self.kill(pid)
        eventually(f"{programs} are dead", lambda: not victims & {p for name in programs for p in self.processes(name)}, 10)

    def busy_ranks(self):
        """The Ranks that work: those of which the processor time grows within half a second."""
        def ticks():
            used = {}
            for pid in self.processes("trainrank"):
                try:
                    with open(f"/proc/{pid}/stat") as f:
                        fields = f.read().rsplit(")", 1)[1].split()
                    used[pid] = int(fields[11]) + int(fields[12])
                except OSError:
                    pass
            return used
        before = ticks()
        time.sleep(0.5)
        return {pid for pid, used in ticks().items() if used > before.get(pid, used) + 2}

    def kill_daemon(self, number=signal.SIGKILL, limit_s=20):
        self.daemon.send_signal(number)
        return self.daemon.wait(limit_s)

    # ---- trainctl

    def cli(self, *arguments, server=None):
        command = [os.path.join(self.bin, "client/trainctl"), "--server", server or self.server, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment(),
                              cwd=self.root, timeout=120)

    def json(self, *arguments, code=0):
        result = self.cli(*arguments, "-o", "json")
        assert result.returncode == code, (arguments, result.returncode, result.stdout, result.stderr)
        return json.loads(result.stdout)

    def submit(self, spec, *arguments, code=0):
        return self.json("submit", "-f", self.write_spec(spec), *arguments, code=code)

    def job(self, job):
        return self.json("get", job)

    def wait(self, job, limit_s=60):
        """The terminal Job."""
        return self.until(job, "the Job has ended", lambda j: j["state"] in ENDED, limit_s)

    def finish(self, job, limit_s=60):
        """Asks for the answer of what is trained, and waits for the end."""
        assert self.cli("finish", job).returncode == 0
        return self.wait(job, limit_s)

    def until(self, job, what, predicate, limit_s=30):
        """The Job, once predicate(it)."""
        last = {}

        def look():
            last["job"] = self.job(job)
            return last["job"] if predicate(last["job"]) else None
        try:
            return eventually(what, look, limit_s)
        except AssertionError:
            print(json.dumps(last.get("job"), indent=1), flush=True)
            raise

    # ---- data

    def write(self, name, text):
        path = os.path.join(self.data, name)
        with open(path, "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)
        return path

    def write_spec(self, spec, name=None):
        """YAML contains JSON."""
        name = name or f"job-{uuid.uuid4().hex[:8]}.yaml"
        return self.write(name, spec if isinstance(spec, str) else json.dumps(spec, indent=1))

    def spec(self, rows=400, folds=3, epochs=5, budget="30s", **changes):
        """A classification Job on generated data: 3 classes, 4 numbers, 1 category."""
        if not os.path.exists(os.path.join(self.data, f"train{rows}.csv")):
            self.write(f"train{rows}.csv", blobs(rows, seed=1))
            self.write(f"test{rows}.csv", blobs(120, seed=2, first_id=rows))
        spec = {
            "api": "v1", "name": "blobs", "cache": "off",
            "task": {"type": "classification", "metric": "accuracy"},
            "data": {"train": f"train{rows}.csv", "test": f"test{rows}.csv", "target": "kind",
                     "id": "id", "folds": folds, "seed": 7},
            "model": {"mlp": {"hidden": [32, 32]}},
            "train": {"epochs": epochs, "batch": 32, "patience": 0, "precision": "fp32",
                      "learning_rate": 0.01},
            "budget": {"time": budget},
        }
        for key, value in changes.items():
            if isinstance(value, dict) and isinstance(spec.get(key), dict):
                spec[key] = {**spec[key], **value}
            else:
                spec[key] = value
        return spec

    def finish_a_prediction(self, job, path, name, *flags, least_bytes):
        """Asks for predictions of a file, and to finish once the first model's answers have so many bytes;
        the Job of that name, which is over."""
        thread = threading.Thread(target=lambda: self.cli("predict", job, "--data", path, "--name", name, *flags))
        thread.start()
        new = eventually("the Job is listed", lambda: next(
            (j for j in self.json("list")["jobs"] if j["name"] == name), None), 40)
        attempts = os.path.join(self.results(new["id"]), "attempts")

        def begun():
            parts = [os.path.join(at, f) for at, _, files in os.walk(attempts) for f in files]
            return any("values-0.npy" in f and os.path.getsize(f) > least_bytes for f in parts)
        eventually("the first model has answered for a part", begun, 60)
        # The Ranks stand still until traind has taken the order, so the model is not through before it, however
        # long trainctl takes on a busy machine.
        ranks = self.processes("trainrank")
        for pid in ranks:
            self.kill(pid, signal.SIGSTOP)
        finished = self.cli("finish", new["id"])
        for pid in ranks:
            self.kill(pid, signal.SIGCONT)
        assert finished.returncode == 0, finished
        thread.join()
        return self.wait(new["id"], 60)

    # ---- checkpoints

    def checkpoints(self, job):
        """Attempt -> steps of its checkpoints that are on disk."""
        found = {}
        for path in glob.glob(os.path.join(self.results(job), "attempts", "*", "checkpoint-*.json")):
            attempt, step = re.search(r"attempts/(\d+)/checkpoint-(\d+)\.json$", path).groups()
            found.setdefault(int(attempt), set()).add(int(step))
        return found

    def until_saved(self, job, limit_s=30):
        """The Job, once an Attempt that trains has two checkpoints: traind knows of the first
        by then, as a Rank reports one before it begins the next."""
        def saved(j):
            steps = self.checkpoints(job)
            return any(f["state"] == "RUNNING" and len(steps.get(f["attempt"], ())) >= 2 for f in j["folds"])
        return self.until(job, "an Attempt that trains has two checkpoints", saved, limit_s)

    def until_again(self, job, limit_s=30):
        """The Job, once a fold trains in a second Attempt."""
        def again(j):
            begun = [a["task"] for a in j["attempts"] if a["first_step"] is not None]
            return len(begun) > len(set(begun))
        return self.until(job, "a fold trains in a second Attempt", again, limit_s)

    def check_resumed(self, job, at_least=1, all_told=True):
        """Each Attempt of a fold began at the step of a checkpoint that an earlier Attempt of it
        has left, where traind knew of one, and not at 0; so did `at_least` Attempts. Where
        traind and Workers were killed in turn (not all_told), it may know of none."""
        steps, left, resumed = self.checkpoints(job["id"]), {}, 0
        for attempt in sorted(job["attempts"], key=lambda a: a["id"]):
            first, task = attempt["first_step"], attempt["task"]
            if first is None:
                continue  # it reads the data, or ended before its first step
            known, told = left.get(task, (set(), False))
            resumed += first > 0
            assert first in known or (first == 0 and not told), (attempt, known)
            # A Rank that dies may not have told of its only checkpoint.
            own = steps.get(attempt["id"], set())
            left[task] = (known | own, told or (all_told and len(own) >= 2))
        assert resumed >= at_least, (resumed, steps, job["attempts"])

    # ---- results on disk

    def results(self, job, state=None):
        return os.path.join(state or self.state, "jobs", job)

    def standing(self, job, state=None):
        """The manifest of the standing Prediction, its files verified; None: there is none."""
        current = os.path.join(self.results(job, state), "current")
        if not os.path.exists(current):
            return None
        with open(os.path.join(current, "manifest.json")) as f:
            manifest = json.load(f)
        assert sha256(os.path.join(current, "predictions.csv")) == manifest["predictions"]["sha256"], manifest
        return manifest

    def check_folds_answer(self, job):
        """All folds that trained answer. Were they worse than the floor, it would answer alone,
        and a Job whose training is broken would look like one that succeeded."""
        assert job["state"] == "SUCCEEDED", job
        assert job["predictions"]["folds"] == [f["index"] for f in job["folds"]], job["predictions"]
        assert job["quality"] in ("FULL", "DEGRADED"), job

    def check_predictions(self, path, rows=120, classes=("a", "b", "c")):
        """The shape of predictions.csv for house.spec(): ids, labels, probabilities."""
        table = rows_of(path)
        assert table[0] == ["id", "kind"] + [f"p_{c}" for c in classes], table[0]
        assert len(table) == rows + 1, len(table)
        for row in table[1:]:
            shares = [float(v) for v in row[2:]]
            assert abs(sum(shares) - 1) < 1e-3 and min(shares) >= 0, row
            assert row[1] == classes[shares.index(max(shares))], row


def poisson(chance, mean):
    """A draw of a Poisson distribution (Knuth 1969)."""
    limit, count, product = math.exp(-min(mean, 100)), 0, chance.random()
    while product > limit:
        product *= chance.random()
        count += 1
    return count


def blobs(rows, seed, first_id=0):
    """A CSV text: 3 classes by the product of two columns, which no linear model
    tells apart, with blanks and missing values."""
    chance = random.Random(seed)
    lines = ["id,x0,x1,x2,x3,colour,kind"]
    for i in range(rows):
        x = [chance.uniform(-2, 2) for _ in range(4)]
        product = x[0] * x[1]
        kind = 0 if product > 0.5 else 1 if product < -0.5 else 2
        values = [f"{v:.4f}" for v in x]
        if i % 11 == 0:
            values[2 + i % 2] = "?"
        colour = ["red", "green", "blue"][chance.randrange(3)]
        lines.append(",".join([str(first_id + i), *values, " " + colour, "abc"[kind]]))
    return "\n".join(lines) + "\n"
