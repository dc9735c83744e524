"""Compares what a budget buys with AutoGluon.

    tests/bench/worth.sh [SET...] --data DIR [--budgets 5,10,30,60] [--peer-python PYTHON] [--peer-preset P]

For each data set (adult, wine: UCI, of DIR; digits: examples/digits) and budget there are two runs, one after the other, each
with the machine's cores to itself: a Job with that budget, and AutoGluon with that time_limit (peers/autogluon_peer.py, by a
Python that has autogluon.tabular[lightgbm]; without --peer-python the peer is left out).

Both are timed from the start of the command (`trainctl submit`, `python`) to the prediction file. One daemon serves all Jobs; its
start counts once, in the first run. Each run tells the score at the deadline (score_at_deadline, null if there was no answer), the
score in the end (score), its time (wall_s; over = wall_s / budget) and whether it was late. The same code scores both on the
test file's target.
One JSON line for each set and budget, then a summary.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

from tests.e2e.harness import ENDED, House, eventually, rows_of

SETS = {  # target, kind, metric
    "adult": ("income", "classification", "accuracy"),
    "wine": ("quality", "regression", "rmse"),
    "digits": ("digit", "classification", "accuracy"),
}
PROBLEMS = {"adult": "binary", "wine": "regression", "digits": "multiclass"}


def prepare(name, options, folder):
    """train.csv and test.csv in the folder; False: the data are not there."""
    pair = [os.path.join(folder, f"{part}.csv") for part in ("train", "test")]
    if name == "digits":
        for part, to in zip(("train", "test"), pair):
            with open(to, "w", encoding="utf-8") as f:  # without the column that names rows
                f.writelines(",".join(row[1:]) + "\n" for row in rows_of(f"examples/digits/{part}.csv"))
    elif name == "adult":
        for part, to in zip(("train", "test"), pair):
            source = os.path.join(options.data, f"adult_{part}.csv")
            if not os.path.exists(source):
                return False
            shutil.copy(source, to)
    else:
        source = os.path.join(options.data, "winequality_white.csv")
        if not os.path.exists(source):
            return False
        with open(source, encoding="utf-8") as f:
            header, *lines = f.readlines()
        # Every fifth row: the file is in no order that a split could follow.
        for part, to in zip((0, 1), pair):
            with open(to, "w", encoding="utf-8") as f:
                f.writelines([header] + [line for i, line in enumerate(lines) if (i % 5 == 4) == bool(part)])
    return True


def score(path, truth, target, metric):
    """Of a prediction file with a column of the target's name; None: there is no whole file."""
    if not os.path.exists(path):
        return None
    table = rows_of(path)
    at = table[0].index(target)
    answers = [row[at].strip() for row in table[1:]]
    if len(answers) != len(truth):
        return None
    if metric == "accuracy":
        return round(sum(a == t for a, t in zip(answers, truth)) / len(truth), 4)
    return round(math.sqrt(sum((float(a) - float(t)) ** 2 for a, t in zip(answers, truth)) / len(truth)), 4)


def outcome(begin, answered, budget, at_deadline, score_in_the_end):
    late = answered is None or answered > begin + budget
    wall = None if answered is None else round(answered - begin, 2)
    return {"score_at_deadline": at_deadline, "score": score_in_the_end, "late": late, "wall_s": wall,
            "over": wall and round(wall / budget, 3)}


def ours(house, name, folder, truth, budget, begin):
    target, kind, metric = SETS[name]
    for part in ("train", "test"):
        shutil.copy(os.path.join(folder, f"{part}.csv"), house.data)
    spec = house.write_spec({
        "api": "v1", "name": name, "cache": "off", "task": {"type": kind, "metric": metric},
        "data": {"train": "train.csv", "test": "test.csv", "target": target}, "train": {"epochs": 35},
        "budget": {"time": f"{budget}s"}})
    job = house.json("submit", "-f", spec)["id"]
    standing = os.path.join(house.results(job), "current", "predictions.csv")

    def over():
        return house.job(job)["state"] in ENDED
    try:
        eventually("the Job is over", over, max(0, begin + budget - time.time()))
    except AssertionError:
        pass  # the deadline is there
    at_deadline = score(standing, truth, target, metric)
    end = house.wait(job, 30)
    answered = os.stat(standing).st_mtime if os.path.exists(standing) else None  # of the last answer
    return {**outcome(begin, answered, budget, at_deadline, score(standing, truth, target, metric)),
            "quality": end["quality"], "folds": len(end["predictions"]["folds"])}


def autogluon(name, folder, truth, budget, options):
    target, _, metric = SETS[name]
    out = os.path.join(folder, "peer.csv")
    if os.path.exists(out):
        os.remove(out)
    command = [options.peer_python, "tests/bench/peers/autogluon_peer.py", os.path.join(folder, "train.csv"),
               os.path.join(folder, "test.csv"), target, PROBLEMS[name],
               "accuracy" if metric == "accuracy" else "root_mean_squared_error", str(budget), out, options.peer_preset]
    begin = time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            text, errors = process.communicate(timeout=20 * budget + 300)
        except subprocess.TimeoutExpired:
            process.kill()
            text, errors = process.communicate()
    if not os.path.exists(out):
        return {**outcome(begin, None, budget, None, None), "error": errors.strip().splitlines()[-1:]}
    answered = os.stat(out).st_mtime  # of the file's last byte; it was renamed to its place then
    value = score(out, truth, target, metric)
    told = text.strip().splitlines()
    return {**outcome(begin, answered, budget, None if answered > begin + budget else value, value),
            **(json.loads(told[-1]) if told else {})}


def cells(options):
    """(name, folder, truth of the test rows, budget), each set prepared once."""
    for name in options.sets or SETS:
        with tempfile.TemporaryDirectory(prefix="traind-worth-") as folder:
            if not prepare(name, options, folder):
                print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                continue
            target = SETS[name][0]
            table = rows_of(os.path.join(folder, "test.csv"))
            truth = [row[[h.strip() for h in table[0]].index(target)].strip() for row in table[1:] if row]
            for budget in options.budgets:
                yield name, folder, truth, budget


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", default=".")
    parser.add_argument("--budgets", default=[5, 10, 30, 60], type=lambda text: [int(b) for b in text.split(",")])
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-preset", default="medium_quality")
    options = parser.parse_args()
    for name in options.sets:
        if name not in SETS:
            parser.error(f"unknown set {name} (known: {', '.join(SETS)})")
    if not options.peer_python:
        print(json.dumps({"peer": "autogluon", "skipped": "no --peer-python"}), flush=True)
    lines = []
    with House(slots=os.cpu_count()) as house:
        for name, folder, truth, budget in cells(options):
            line = {"data": name, "metric": SETS[name][2], "budget_s": budget}
            begin = time.time()
            if house.daemon is None:
                house.start()
                line["daemon_start_s"] = round(time.time() - begin, 2)
            line["ours"] = ours(house, name, folder, truth, budget, begin)
            if options.peer_python:
                time.sleep(1)  # until the Worker has replaced its Ranks, so that the peer has the cores to itself
                line["autogluon"] = autogluon(name, folder, truth, budget, options)
            print(json.dumps(line), flush=True)
            lines.append(line)
    summary = {"runs": len(lines), "ours_on_time": sum(not x["ours"]["late"] for x in lines)}
    if options.peer_python:
        summary["peer_on_time"] = sum(not x["autogluon"]["late"] for x in lines)
    print(json.dumps({**summary, "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
