"""What a budget buys, beside AutoGluon.

    tests/bench/worth.sh [SET...] --data DIR [--budgets 5,10,30,60] [--peer-python PYTHON] [--peer-preset P]

For each data set (adult, wine: UCI, of DIR; digits: examples/digits) and budget two runs, one after the other, each with
the machine's cores to itself: a Job with that budget, and AutoGluon with that time_limit (peers/autogluon_peer.py, by a
Python that has autogluon.tabular[lightgbm]; without one the peer is left out). Both are timed from the start of
the command (`trainctl submit`, `python`) to the prediction file, and scored by the same code on the test file's target:
what stood at the deadline, and what came of it in the end. One JSON line for each set and budget, then a summary.
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

from tests.e2e.harness import House, eventually, moment, rows_of

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


def ours(name, folder, truth, budget):
    target, kind, metric = SETS[name]
    with House(slots=os.cpu_count()) as house:
        for part in ("train", "test"):
            shutil.copy(os.path.join(folder, f"{part}.csv"), house.data)
        house.start()
        spec = house.write_spec({
            "api": "v1", "name": name, "cache": "off", "task": {"type": kind, "metric": metric},
            "data": {"train": "train.csv", "test": "test.csv", "target": target}, "train": {"epochs": 35},
            "budget": {"time": f"{budget}s"}})
        begin = time.time()
        job = house.json("submit", "-f", spec)
        standing = os.path.join(house.results(job["id"]), "current", "predictions.csv")
        # Until the Job is over or the deadline is there.
        end = house.wait(job["id"], budget + 30)
        time.sleep(max(0.0, begin + budget - time.time()))
        at_deadline = score(standing, truth, target, metric)
        over = moment(end["finished_at"])
        return {"score_at_deadline": at_deadline, "score": score(standing, truth, target, metric),
                "wall_s": round(over - begin, 2), "over": round((over - begin) / budget, 3),
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
            eventually("the peer's answer", lambda: os.path.exists(out) or process.poll() is not None, 20 * budget + 300)
            answered = time.time()
            text, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    if not os.path.exists(out):
        return {"score_at_deadline": None, "score": None, "wall_s": round(answered - begin, 2),
                "over": round((answered - begin) / budget, 3), "error": errors.strip().splitlines()[-1:]}
    late = answered > begin + budget
    value = score(out, truth, target, metric)
    return {"score_at_deadline": None if late else value, "score": value, "wall_s": round(answered - begin, 2),
            "over": round((answered - begin) / budget, 3), **json.loads(text.strip().splitlines()[-1])}


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
    for name in options.sets or SETS:
        with tempfile.TemporaryDirectory(prefix="traind-worth-") as folder:
            if not prepare(name, options, folder):
                print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                continue
            target, _, metric = SETS[name]
            table = rows_of(os.path.join(folder, "test.csv"))
            truth = [row[[h.strip() for h in table[0]].index(target)].strip() for row in table[1:] if row]
            for budget in options.budgets:
                line = {"data": name, "metric": metric, "budget_s": budget, "ours": ours(name, folder, truth, budget)}
                if options.peer_python:
                    line["autogluon"] = autogluon(name, folder, truth, budget, options)
                print(json.dumps(line), flush=True)
                lines.append(line)
    print(json.dumps({"runs": len(lines), "ours_on_time": sum(x["ours"]["score_at_deadline"] is not None and
                                                              x["ours"]["over"] <= 1 for x in lines),
                      "peer_on_time": sum(x.get("autogluon", {}).get("score_at_deadline") is not None for x in lines),
                      "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
