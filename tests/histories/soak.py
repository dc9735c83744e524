"""Lets traind work under faults for long, and judges whether it stays the size that it was.

    PYTHONPATH=$PWD python3 tests/histories/soak.py [--seconds 3600]

Clients keep a few Jobs open; a fault strikes every two seconds. For the first two thirds traind itself is stopped at times
but never killed, so that its memory and descriptors are those of one process; after that everything is struck. Retention
keeps few Jobs, so that the state folder has a size to stay at.

Every 5 s a line of JSON tells memory, descriptors and threads of traind and the Worker, and what lies on the disk. The last
line sums up. Exits 1 if something grew, or if a Job had no answer before its deadline.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time

from tests.e2e.harness import House
from tests.histories.load import short, until_the_deadline
from tests.histories.nemesis import FAULTS, Nemesis
from tests.histories.recorder import Client, History

OVER = ("SUCCEEDED", "FAILED", "CANCELLED")
# What ends the process whose growth is looked for.
ENDS_A_DAEMON = {"kill traind", "kill trainworker", "kill all"}
SPARES_DAEMONS = tuple(fault for fault in FAULTS if fault not in ENDS_A_DAEMON)


class Submitter(threading.Thread):
    """Submits a Job and waits for its end, again and again."""

    def __init__(self, house, history, number, kind):
        super().__init__(daemon=True)
        self.client = Client(house, history, number, timeout_s=10)
        self.house, self.number, self.kind = house, number, kind
        self.stopping = threading.Event()
        self.jobs, self.failures, self.error = 0, [], None

    def run(self):
        try:
            while not self.stopping.is_set():
                self.one_job()
        except Exception as e:  # the soak fails with it
            self.error = e

    def one_job(self):
        key = f"soak-{self.number}-{self.jobs}"
        spec, told, view = self.kind(self.house, key), None, None
        while told is None:
            told = self.client.submit(key, spec)
        begin = time.monotonic()
        while view is None or view["state"] not in OVER:
            if time.monotonic() - begin > 120:
                self.failures.append({"job": told["job"], "why": "not over within 120 s"})
                break
            time.sleep(0.1)
            view = self.client.get(told["job"]) or view
        else:
            self.judge(view)
        self.jobs += 1

    def judge(self, view):
        if view["state"] != "SUCCEEDED" or not view["prediction"]:
            self.failures.append({"job": view["id"], "why": f"{view['state']} {view['end_reason']}"})
        elif view["finished_at"] > view["deadline"] + 0.001:
            self.failures.append({"job": view["id"], "why": f"{view['finished_at'] - view['deadline']:.3f} s late"})


def of_process(pid):
    """Kilobytes of memory that are its own, descriptors and threads."""
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f if ":" in line)
    return {"pid": pid, "kb": int(fields["RssAnon"].split()[0]), "threads": int(fields["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def of_folder(folder):
    """Kilobytes and files, as `du` counts them."""
    told = subprocess.run(["du", "-sk", folder], capture_output=True, text=True).stdout  # files may go meanwhile
    files = subprocess.run(["du", "-s", "--inodes", folder], capture_output=True, text=True).stdout
    return {"kb": int(told.split()[0]), "files": int(files.split()[0])}


class Sampler(threading.Thread):
    def __init__(self, house, every_s=5):
        super().__init__(daemon=True)
        self.house, self.every_s, self.begin = house, every_s, time.monotonic()
        self.samples, self.stopping = [], threading.Event()

    def run(self):
        while not self.stopping.wait(self.every_s):
            sample = {"at": round(time.monotonic() - self.begin, 1), "disk": of_folder(self.house.state),
                      "load": round(os.getloadavg()[0], 2)}
            try:
                sample["traind"] = of_process(self.house.daemon.pid)
                for pid in self.house.processes("trainworker"):
                    sample["worker"] = of_process(pid)
            except (FileNotFoundError, ProcessLookupError, KeyError):
                pass  # it is being started again
            sample["processes"] = len(self.house.processes())
            self.samples.append(sample)
            print(json.dumps(sample), flush=True)


def mean(samples, first, second):
    values = [sample[first][second] for sample in samples if first in sample]
    return sum(values) / len(values) if values else 0


# What may be added between the two quarters that are compared, as a share of it and in its unit: the size of a process
# swings by a few hundred kilobytes with what it just does, the folder by a checkpoint or two.
ALLOWED = {("traind", "kb"): (0.10, 2048), ("traind", "descriptors"): (0.0, 4), ("traind", "threads"): (0.0, 2),
           ("worker", "kb"): (0.10, 2048), ("worker", "descriptors"): (0.0, 4), ("worker", "threads"): (0.0, 2),
           ("disk", "kb"): (0.15, 4096), ("disk", "files"): (0.15, 100)}


def growth(samples):
    """From the second quarter of the samples to the last one."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter], samples[3 * quarter:]
    found = {}
    for (first, second), (share, more) in ALLOWED.items():
        before, after = mean(early, first, second), mean(late, first, second)
        found[f"{first} {second}"] = {"before": round(before, 1), "after": round(after, 1),
                                      "grew": after > before * (1 + share) + more}
    return found


def soak(seconds, seed, keep_jobs, pause):
    """The last line."""
    chance = random.Random(seed)
    with House(slots=2) as house:
        start = house.start
        house.start = lambda **options: start("--keep-jobs", str(keep_jobs), **options)
        house.start()
        history = History(os.devnull)
        submitters = [Submitter(house, history, 0, short), Submitter(house, history, 1, until_the_deadline)]
        sampler, nemesis = Sampler(house), Nemesis(house, history, chance)
        for thread in submitters + [sampler]:
            thread.start()
        pids = {house.daemon.pid}
        nemesis.run(pause, SPARES_DAEMONS, seconds * 2 / 3)
        pids.add(house.daemon.pid)
        spared = len(sampler.samples)
        nemesis.run(pause, FAULTS, seconds / 3)
        nemesis.over()
        for thread in submitters:
            thread.stopping.set()
        for thread in submitters:
            thread.join()
            if thread.error:
                raise thread.error
        sampler.stopping.set()
        sampler.join()
    found, disk = growth(sampler.samples[:spared]), growth(sampler.samples)
    found.update({name: disk[name] for name in disk if name.startswith("disk")})
    return {"seconds": seconds, "jobs": sum(s.jobs for s in submitters), "one_traind": len(pids) == 1,
            "failures": [failure for s in submitters for failure in s.failures], "struck": nemesis.struck,
            "grew": sorted(name for name in found if found[name]["grew"]), **found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-jobs", type=int, default=30)
    parser.add_argument("--pause", type=float, default=2, help="seconds between faults")
    options = parser.parse_args()
    found = soak(options.seconds, options.seed, options.keep_jobs, (options.pause / 2, options.pause * 3 / 2))
    print(json.dumps(found), flush=True)
    return 1 if found["grew"] or found["failures"] or not found["one_traind"] else 0


if __name__ == "__main__":
    sys.exit(main())
