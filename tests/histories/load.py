"""What clients do while faults strike."""
import random
import threading
import time

from tests.histories.recorder import Client


class Board:
    """What the clients know together. At most `most_open` Jobs are open, so that they get their time on two cores.
    Threads: safe."""

    def __init__(self, most_open):
        self.lock, self.most_open = threading.Lock(), most_open
        self.specs = {}  # key -> spec
        self.ids = {}    # key -> job, once acknowledged
        self.kinds = {}  # key -> kind
        self.over = set()
        self.labels = {}  # job -> the last value tried
        self.owner = {}  # job -> the client that sets its label

    def open_keys(self):
        with self.lock:
            return [key for key in self.specs if self.ids.get(key) not in self.over]

    def jobs(self):
        with self.lock:
            return sorted(self.ids.values())


def short(house, key):
    return house.spec(rows=150, folds=2, epochs=4, budget="60s", name=key)


def until_the_deadline(house, key):
    return house.spec(rows=600, folds=2, budget="6s", name=key,
                      train={"epochs": 100000, "checkpoint_every": "300ms"})


def without_deadline(house, key):
    spec = house.spec(rows=600, folds=2, name=key, train={"epochs": 100000, "checkpoint_every": "300ms"})
    del spec["budget"]
    return spec


KINDS = {"short": short, "until the deadline": until_the_deadline, "without deadline": without_deadline}


class Caller(threading.Thread):
    """One client; goes on until it is told to stop."""

    def __init__(self, house, history, board, number, seed, kinds):
        super().__init__(daemon=True)
        self.client = Client(house, history, number)
        self.house, self.board, self.number, self.kinds = house, board, number, kinds
        self.chance = random.Random(seed)
        self.stopping = threading.Event()
        self.known = {}  # (what, job) -> the last sequence that was read
        self.made, self.error = 0, None

    def stop(self):
        self.stopping.set()
        self.join()
        if self.error:
            raise self.error

    def run(self):
        try:
            while not self.stopping.is_set():
                self.step()
                time.sleep(self.chance.uniform(0.001, 0.03))
        except Exception as e:  # the run fails with it
            self.error = e

    def step(self):
        jobs = self.board.jobs()
        roll = self.chance.random()
        if not jobs or roll < 0.12:
            return self.submit_new()
        if roll < 0.24:
            return self.submit_again()
        if roll < 0.27:
            return self.client.list()
        job = self.chance.choice(jobs[-8:] if self.chance.random() < 0.5 else jobs)
        if roll < 0.45:
            return self.label(job)
        if roll < 0.50:
            return self.end(job)
        if roll < 0.65:
            return self.look(self.client.get(job))
        if roll < 0.78:
            return self.read_on("events", job)
        if roll < 0.88:
            return self.read_on("metrics", job)
        return self.client.disk(job)

    def look(self, view):
        if view and view["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
            with self.board.lock:
                self.board.over.add(view["id"])

    def submit_new(self):
        if len(self.board.open_keys()) >= self.board.most_open:
            with self.board.lock:
                jobs = [j for j in self.board.ids.values() if j not in self.board.over]
            return self.look(self.client.get(self.chance.choice(jobs))) if jobs else self.submit_again()
        self.made += 1
        key = f"k{self.number}-{self.made}"
        kind = self.chance.choice(self.kinds)
        with self.board.lock:
            self.board.kinds[key], self.board.specs[key] = kind, KINDS[kind](self.house, key)
        self.submit(key)

    def submit(self, key):
        told = self.client.submit(key, self.board.specs[key])
        if told:
            with self.board.lock:
                self.board.ids.setdefault(key, told["job"])
                self.board.owner.setdefault(told["job"], self.number)

    def submit_again(self):
        """At first what nobody knows of."""
        with self.board.lock:
            keys = sorted(self.board.specs)
            open_ends = [key for key in keys if key not in self.board.ids]
        if not keys:
            return
        if not open_ends and self.chance.random() < 0.2:
            key = self.chance.choice(keys)
            return self.client.submit(key, {**self.board.specs[key], "priority": 7}, other=True)
        self.submit(self.chance.choice(open_ends or keys))

    def label(self, job):
        """The owner of a Job counts it up; a number is tried once."""
        with self.board.lock:
            if self.board.owner.get(job) != self.number or job in self.board.over:
                return
            value = self.board.labels[job] = self.board.labels.get(job, 0) + 1
        self.client.label(job, value)

    def end(self, job):
        with self.board.lock:
            kinds = {self.board.ids[key]: kind for key, kind in self.board.kinds.items() if key in self.board.ids}
            if kinds.get(job) != "without deadline" or job in self.board.over:
                return
        self.look(self.client.cancel(job) if self.chance.random() < 0.3 else self.client.finish(job))

    def read_on(self, what, job):
        """From where it left off, or from the beginning."""
        after = self.known.get((what, job), 0) if self.chance.random() < 0.7 else 0
        if what == "events":
            told = self.client.events(job, after)
            entries = told and told["events"]
        else:
            told = self.client.metrics(job, after)
            entries = told and told["points"]
        if entries:
            self.known[what, job] = max(after, entries[-1][0])


def wind_up(house, history, board, limit_s):
    """After the faults: what is open is asked for once more, ends, and everything is read. Returns whether all ended."""
    client = Client(house, history, "last", timeout_s=20)
    for key, spec in sorted(board.specs.items()):
        told = client.submit(key, spec)
        if told:
            board.ids.setdefault(key, told["job"])
    end, open_jobs, finished = time.monotonic() + limit_s, dict(board.ids), set()
    while open_jobs and time.monotonic() < end:
        for key, job in sorted(open_jobs.items()):
            view = client.get(job)
            if view and view["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
                del open_jobs[key]
            elif board.kinds[key] == "without deadline" and job not in finished and client.finish(job):
                finished.add(job)
        time.sleep(0.2)
    history.record("last", "end", None, {}, lambda: {"open": len(open_jobs)})
    for key, spec in sorted(board.specs.items()):
        client.submit(key, spec)
    for job in sorted(board.ids.values()):
        client.get(job)
        client.events(job)
        client.metrics(job)
        client.disk(job)
    client.list()
    return not open_jobs
