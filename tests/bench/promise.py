"""Checks the promise with real Jobs, real processes and real faults.

    tests/bench/promise.sh [JOBS] [--seed S] [--data DIR] [--verbose]

Runs Jobs with budgets of 3 to 20 s on 2 slots, a few at once on a daemon of their own, each batch under one fault:
none, a Rank stopped (SIGSTOP) for a while or for good, a Rank killed, the Worker killed, traind killed and started
again (perhaps only after the deadline), storage full for 2 s, storage ten times slower; and one batch of many Jobs
with one deadline. An observer reads each results folder at the deadline itself, without the daemon. The data are the
digits, generated tables, and adult_train.csv, adult_test.csv and winequality_white.csv (UCI) if DIR has them.

The last line sums up: jobs, on_time (a whole, right Prediction stood at the deadline and nothing changed after it),
with_prediction, worst_slack_ms and p99_slack_ms (deadline - last publication), productive_ratio (time from the first
to the last step of some fold / budget, over Jobs without a fault).
"""
import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import threading
import time

from tests.e2e.harness import House, moment, rows_of

FAULTS = ["none", "rank_stopped", "rank_hung", "rank_killed", "worker_killed", "daemon_killed", "daemon_gone",
          "storage_full", "storage_slow"]


class FaultyHouse(House):
    """Its processes write through tests/bench/storage_fault.c."""

    def __enter__(self):
        self.fault_file = os.path.join(self.root, "fault")
        self.set_fault("0")
        return super().__enter__()

    def set_fault(self, fault):
        # In place: every process has the page mapped.
        with open(self.fault_file, "r+b" if os.path.exists(self.fault_file) else "wb") as f:
            f.write(fault.encode())

    def environment(self):
        library = os.path.realpath(os.path.join(self.bin, "tests/bench/storage_fault.so"))
        return {**super().environment(), "STORAGE_FAULT": self.fault_file, "LD_PRELOAD": library}


class Data:
    """Specs on real and generated data, by chance."""

    def __init__(self, house, folder):
        self.house, self.kinds = house, ["digits", "blobs", "wide"]
        for name in ("train.csv", "test.csv"):
            shutil.copy(os.path.join("examples/digits", name), os.path.join(house.data, f"digits_{name}"))
        if folder and os.path.exists(os.path.join(folder, "adult_train.csv")):
            self.kinds.append("adult")
            for name in ("adult_train.csv", "adult_test.csv"):
                shutil.copy(os.path.join(folder, name), house.data)
        if folder and os.path.exists(os.path.join(folder, "winequality_white.csv")):
            self.kinds.append("wine")
            with open(os.path.join(folder, "winequality_white.csv")) as f:
                lines = f.readlines()
            house.write("wine_train.csv", "".join(lines[:4000]))
            house.write("wine_test.csv", lines[0] + "".join(lines[4000:]))

    def spec(self, chance, budget):
        kind = chance.choice(self.kinds)
        epochs = chance.choice([5, 20, 1000])
        folds = chance.choice([2, 3, 5])
        if kind in ("blobs", "wide"):
            rows = 400 if kind == "blobs" else 4000
            return self.house.spec(rows=rows, folds=folds, epochs=epochs, budget=f"{budget:.3f}s"), 120
        files = {"digits": ("digits_train.csv", "digits_test.csv", "label", "classification"),
                 "adult": ("adult_train.csv", "adult_test.csv", "income", "classification"),
                 "wine": ("wine_train.csv", "wine_test.csv", "quality", "regression")}[kind]
        with open(os.path.join(self.house.data, files[0])) as f:
            header = f.readline().replace('"', "").strip().replace(";", ",").split(",")
        target = files[2] if files[2] in header else header[-1]
        spec = {"api": "v1", "name": kind, "cache": "off", "task": {"type": files[3]},
                "data": {"train": files[0], "test": files[1], "target": target, "folds": folds, "seed": 7},
                "model": {"mlp": {}}, "train": {"epochs": epochs}, "budget": {"time": f"{budget:.3f}s"}}
        return spec, len(rows_of(os.path.join(self.house.data, files[1]))) - 1


class Observer(threading.Thread):
    """Looks at a Job's results at its deadline and a little later, without asking anybody."""

    def __init__(self, house, job, rows):
        super().__init__()
        self.house, self.job, self.rows = house, job, rows
        self.deadline = moment(job["deadline"])
        self.problem, self.slack_ms, self.quality = None, math.nan, None

    def run(self):
        time.sleep(max(0, self.deadline - time.time()))
        try:
            at_deadline = self.look()
        except (AssertionError, OSError, ValueError, KeyError) as e:
            self.problem = f"at the deadline: {e!r}"
            return
        if at_deadline is None:
            self.problem = "no Prediction at the deadline"
            return
        self.slack_ms, self.quality = 1000 * (self.deadline - at_deadline[1]), at_deadline[2]
        time.sleep(1.5)
        later = self.look()
        if later is None or later[0] != at_deadline[0]:
            self.problem = "the Prediction changed after the deadline"

    def look(self):
        """(number, when it was switched to, quality) of the standing Prediction, verified."""
        manifest = self.house.standing(self.job["id"])
        if manifest is None:
            return None
        link = os.path.join(self.house.results(self.job["id"]), "current")
        table = rows_of(os.path.join(link, "predictions.csv"))
        if len(table) != self.rows + 1:
            raise ValueError(f"{len(table) - 1} rows predicted, {self.rows} asked for")
        return manifest["number"], os.lstat(link).st_mtime, manifest["quality"]


def strike(house, fault, chance, budget):
    """Does what the fault says, while Jobs with that budget run; returns when it is over."""
    time.sleep(chance.uniform(0.1, 0.8) * budget)
    ranks = list(house.processes("trainrank"))
    if fault.startswith("rank") and ranks:
        victim = chance.choice(ranks)
        if fault == "rank_killed":
            return house.kill(victim)
        house.kill(victim, signal.SIGSTOP)
        if fault == "rank_stopped":
            time.sleep(chance.uniform(0.2, 3))
            house.kill(victim, signal.SIGCONT)
    elif fault == "worker_killed":
        for worker in house.processes("trainworker"):
            house.kill(worker)
    elif fault == "daemon_killed":
        house.kill_daemon()
        time.sleep(chance.uniform(0, 2))
        house.start()
    elif fault == "daemon_gone":
        house.kill_daemon()
    elif fault == "storage_full":
        house.set_fault("f")
        time.sleep(2)
        house.set_fault("0")
    elif fault == "storage_slow":
        house.set_fault("s")
        time.sleep(0.3 * budget)
        house.set_fault("0")


def productive(job):
    """Share of the window in which some fold trained."""
    spans = [(moment(a["started_at"]), moment(a["ended_at"])) for a in job["attempts"] if a["task"] != "prepare"]
    if not spans or job["quality"] == "FULL":
        return None
    window = moment(job["deadline"]) - moment(job["accepted_at"])
    return (max(e for _, e in spans) - min(b for b, _ in spans)) / window


def batch(fault, chance, options, jobs, budget=None):
    """One House, some Jobs at once, one fault. Returns a record per Job."""
    with FaultyHouse(slots=2) as house:
        data = Data(house, options.data)
        house.start()
        if fault == "many_at_once":
            at = time.time() + budget
        observers, records = [], []
        longest = 0
        for _ in range(jobs):
            own = at - time.time() if fault == "many_at_once" else chance.uniform(3, 20)
            longest = max(longest, own)
            spec, rows = data.spec(chance, own)
            observers.append(Observer(house, house.submit(spec), rows))
            observers[-1].start()
        if fault not in ("none", "many_at_once"):
            strike(house, fault, chance, longest)
        for observer in observers:
            observer.join()
        if fault == "daemon_gone":
            house.start()
        for observer in observers:
            job = house.wait(observer.job["id"], 30)
            records.append({"fault": fault, "job": job["name"], "problem": observer.problem, "quality": observer.quality,
                            "slack_ms": observer.slack_ms, "end_reason": job["end_reason"],
                            "productive": productive(job) if fault == "none" and jobs == 1 else None,
                            "decisions": [d["rule"] for d in job["decisions"]]})
            if observer.problem and options.verbose:
                print(json.dumps(job), flush=True)
                house.tell()
        # A Rank that was stopped for good ends with its Worker.
        for pid in house.processes("trainrank"):
            house.kill(pid, signal.SIGCONT)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="?", type=int, default=200)
    parser.add_argument("--many", type=int, default=50, help="Jobs of the batch with one deadline; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data")
    parser.add_argument("--faults", default=",".join(FAULTS), type=lambda text: text.split(","))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    records = []

    def take(more):
        for record in more:
            print(json.dumps(record), flush=True)
        records.extend(more)

    while len(records) < options.jobs:
        fault = options.faults[len(records) % len(options.faults)]
        take(batch(fault, chance, options, min(chance.choice([1, 1, 2, 4]), options.jobs - len(records))))
    if options.many:
        take(batch("many_at_once", chance, options, options.many, budget=30))
    slacks = sorted(r["slack_ms"] for r in records if not math.isnan(r["slack_ms"]))
    shares = [r["productive"] for r in records if r["productive"] is not None]
    print(json.dumps({
        "jobs": len(records), "on_time": sum(r["problem"] is None for r in records),
        "with_prediction": len(slacks), "worst_slack_ms": round(slacks[0]) if slacks else None,
        "p99_slack_ms": round(slacks[len(slacks) // 100]) if slacks else None,
        "productive_ratio": round(sum(shares) / len(shares), 3) if shares else None, "seed": options.seed,
        "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0 if all(r["problem"] is None for r in records) else 1


if __name__ == "__main__":
    sys.exit(main())
