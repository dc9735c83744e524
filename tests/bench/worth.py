"""Compares what a budget buys with AutoGluon, and with LightGBM used by hand.

    tests/bench/worth.sh [SET...] --data DIR [--budgets 5,10,30,60] [--peer-python PYTHON] [--peer-preset P] [--spec JSON]
    tests/bench/worth.sh [SET...] --tables DIR/sets.json ...     other tables: {name: [target, "accuracy" or "rmse"]}, whose files
                                                                 are DIR/NAME_train.csv and DIR/NAME_test.csv (r_tables.py)
    tests/bench/worth.sh [SET...] --data DIR --splits N ...      the rows of both files cut anew into as many, N times; beside LightGBM
                                                                 by hand alone. One line for each cut, then for each set and budget
                                                                 the mean scores, and the mean of our gains with its standard error

For each data set (the ten tables of DIR that have a target, and examples/digits) and budget there are two runs, one after the
other, each with the machine's cores to itself: a Job with that budget, whose spec names the data, the metric and the budget and
nothing else (--spec adds fields), and AutoGluon with that time_limit (peers/autogluon_peer.py, by a Python that has
autogluon.tabular[lightgbm,xgboost,catboost]; without --peer-python there is no peer). Once for each set LightGBM runs with its
defaults, five folds and early stopping, as a script by hand has it (peers/lightgbm_by_hand.py).

All are timed from the start of the command (`trainctl submit`, `python`) to the prediction file. One daemon serves all Jobs; its
start counts once, in the first run. Each run tells the score at the deadline (score_at_deadline, null if there was no answer), the
score in the end (score), its time (wall_s; over = wall_s / budget) and whether it was late. The same code scores all on the
test file's target. One JSON line for each set and budget, then a summary: `level` counts the cells in which ours is better than the
peer's or within the standard error of its own test score, among those in which the peer was on time.
"""
import argparse
import csv
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from tests.e2e.harness import ENDED, House, eventually, rows_of

ACCURACY, RMSE = ("classification", "accuracy"), ("regression", "rmse")
SETS = {  # target, kind, metric
    "adult": ("income", *ACCURACY), "wine": ("quality", *RMSE), "digits": ("digit", *ACCURACY),
    "housing": ("value", *RMSE), "hypothyroid": ("Class", *ACCURACY), "imports": ("price", *RMSE),
    "pima": ("diabetes", *ACCURACY), "segment": ("class", *ACCURACY), "sonar": ("object", *ACCURACY),
    "soybean": ("class", *ACCURACY), "titanic": ("survived", *ACCURACY),
}
WHOLE = {"wine": "winequality_white", "titanic": "titanic"}  # of one file; every fifth row is a test row
NO_FEATURES = {"id", "row_id", "alive"}  # numbers of rows, and the target by another name (titanic)


def columns_without(table, names):
    keep = [i for i, name in enumerate(table[0]) if name.strip() not in names]
    return [[row[i] for i in keep] for row in table if row]


def tables_of(name, data):
    """The rows of the training and of the test file; None: they are not there."""
    if name == "digits":
        files = [f"examples/digits/{part}.csv" for part in ("train", "test")]
    elif name in WHOLE:
        files = [os.path.join(data, f"{WHOLE[name]}.csv")]
    else:
        files = [os.path.join(data, f"{name}_{part}.csv") for part in ("train", "test")]
    if not all(os.path.exists(f) for f in files):
        return None
    tables = [rows_of(f) for f in files]
    if name in WHOLE:  # the file is in no order that a split could follow
        header, *rows = tables[0]
        tables = [[header] + [row for i, row in enumerate(rows) if (i % 5 == 4) == test] for test in (False, True)]
    return [columns_without(table, NO_FEATURES) for table in tables]


def cut_anew(tables, seed):
    """Tables as large as those given, with their rows in a random order."""
    header, train, test = tables[0][0], tables[0][1:], tables[1][1:]
    at = [tables[1][0].index(column) for column in header]
    rows = train + [[row[i] for i in at] for row in test]
    random.Random(seed).shuffle(rows)
    return [[header] + rows[:len(train)], [header] + rows[len(train):]]


def prepare(name, options, folder, seed=None):
    """train.csv and test.csv in the folder; False: the data are not there."""
    tables = tables_of(name, options.data)
    if tables and seed is not None:
        tables = cut_anew(tables, seed)
    for part, table in zip(("train", "test"), tables or ()):
        with open(os.path.join(folder, f"{part}.csv"), "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows(table)
    return tables is not None


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


def standard_error(path, truth, target, metric):
    """Of the test score; None: there is no whole file."""
    value = score(path, truth, target, metric)
    if value is None or len(truth) < 2:
        return None
    if metric == "accuracy":
        return math.sqrt(value * (1 - value) / len(truth))
    table = rows_of(path)
    at = table[0].index(target)
    squares = [(float(row[at]) - float(t)) ** 2 for row, t in zip(table[1:], truth)]
    mean = sum(squares) / len(squares)
    spread = math.sqrt(sum((s - mean) ** 2 for s in squares) / (len(squares) - 1))
    return spread / math.sqrt(len(squares)) / (2 * math.sqrt(mean)) if mean > 0 else 0.0


def ours(house, name, folder, truth, budget, begin, more=None):
    target, _, metric = SETS[name]
    for part in ("train", "test"):
        shutil.copy(os.path.join(folder, f"{part}.csv"), house.data)
    spec = {"name": name, "cache": "off", "task": {"metric": metric},
            "data": {"train": "train.csv", "test": "test.csv", "target": target}, "budget": {"time": f"{budget}s"}}
    for part, fields in (more or {}).items():
        spec[part] = {**spec.get(part, {}), **fields} if isinstance(fields, dict) else fields
    spec = house.write_spec(spec)
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
    error = standard_error(standing, truth, target, metric)
    report = end.get("report", {})
    members = end["predictions"].get("members", [])
    kinds = sorted({member.get("kind", "") for member in members})
    return {**outcome(begin, answered, budget, at_deadline, score(standing, truth, target, metric)),
            "standard_error": error and round(error, 4), "quality": end["quality"],
            "folds": len(end["predictions"]["folds"]), "members": len(members), "kinds": kinds,
            "used_share": report.get("used_share"), "revisions": report.get("revisions"),
            "oof": end["scores"].get("oof")}


def by_hand(name, folder, truth, options):
    """LightGBM without a limit of time: its score, and its time from the start of the command."""
    target, kind, metric = SETS[name]
    out = os.path.join(folder, "by_hand.csv")
    begin = time.time()
    done = subprocess.run([options.peer_python, "tests/bench/peers/lightgbm_by_hand.py", os.path.join(folder, "train.csv"),
                           os.path.join(folder, "test.csv"), target, kind, out], capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    return {"score": score(out, truth, target, metric), "wall_s": round(os.stat(out).st_mtime - begin, 2)}


def problem_of(kind, folder, target):
    if kind == "regression":
        return kind
    table = rows_of(os.path.join(folder, "train.csv"))
    at = [name.strip() for name in table[0]].index(target)
    return "binary" if len({row[at].strip() for row in table[1:]}) == 2 else "multiclass"


def is_level(line):
    """Whether ours is better than the peer's score at the deadline, or within its own standard error of it."""
    mine, peer = line["ours"], line["autogluon"]
    if mine["score_at_deadline"] is None:
        return False
    gain = mine["score_at_deadline"] - peer["score_at_deadline"]
    return (gain if line["metric"] == "accuracy" else -gain) >= -(mine["standard_error"] or 0)


def autogluon(name, folder, truth, budget, options):
    target, kind, metric = SETS[name]
    out = os.path.join(folder, "peer.csv")
    if os.path.exists(out):
        os.remove(out)
    command = [options.peer_python, "tests/bench/peers/autogluon_peer.py", os.path.join(folder, "train.csv"),
               os.path.join(folder, "test.csv"), target, problem_of(kind, folder, target),
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
    """(name, folder, truth of the test rows, budget, number of the cut), each set and cut prepared once."""
    for name in options.sets or SETS:
        for cut in range(options.splits or 1):
            with tempfile.TemporaryDirectory(prefix="traind-worth-") as folder:
                if not prepare(name, options, folder, cut if options.splits else None):
                    print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                    break
                target = SETS[name][0]
                table = rows_of(os.path.join(folder, "test.csv"))
                truth = [row[[h.strip() for h in table[0]].index(target)].strip() for row in table[1:] if row]
                for budget in options.budgets:
                    yield name, folder, truth, budget, cut


def gains(lines):
    """For each set and budget: mean scores, and our mean gain over LightGBM by hand with its standard error."""
    sets = {}
    for line in lines:
        if line["by_hand"].get("score") is not None and line["ours"]["score_at_deadline"] is not None:
            sets.setdefault((line["data"], line["metric"], line["budget_s"]), []).append(
                (line["ours"]["score_at_deadline"], line["by_hand"]["score"]))
    for (name, metric, budget), pairs in sets.items():
        differences = [(mine - hand) * (1 if metric == "accuracy" else -1) for mine, hand in pairs]
        error = statistics.stdev(differences) / math.sqrt(len(pairs)) if len(pairs) > 1 else None
        yield {"data": name, "metric": metric, "budget_s": budget, "cuts": len(pairs),
               "ours": round(statistics.mean(mine for mine, _ in pairs), 4),
               "by_hand": round(statistics.mean(hand for _, hand in pairs), 4),
               "gain": round(statistics.mean(differences), 4), "standard_error": error and round(error, 4),
               "better": sum(d > 0 for d in differences), "worse": sum(d < 0 for d in differences)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", default=".")
    parser.add_argument("--tables", help="a JSON file of other sets")
    parser.add_argument("--budgets", default=[5, 10, 30, 60], type=lambda text: [int(b) for b in text.split(",")])
    parser.add_argument("--splits", type=int, help="this many random cuts, beside LightGBM by hand alone")
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-preset", default="medium_quality")
    parser.add_argument("--spec", default={}, type=json.loads, help="fields that are added to the specs, as JSON")
    options = parser.parse_args()
    if options.tables:
        with open(options.tables, encoding="utf-8") as f:
            others = {name: (target, *{ACCURACY[1]: ACCURACY, RMSE[1]: RMSE}[metric]) for name, (target, metric) in json.load(f).items()}
        for known in (SETS, WHOLE):
            known.clear()
        SETS.update(others)
        options.data = os.path.dirname(options.tables)
    for name in options.sets:
        if name not in SETS:
            parser.error(f"unknown set {name} (known: {', '.join(SETS)})")
    if not options.peer_python:
        print(json.dumps({"peer": "autogluon", "skipped": "no --peer-python"}), flush=True)
    lines, scripted = [], {}  # scripted: what LightGBM by hand told, by set and cut
    with House(slots=os.cpu_count()) as house:
        for name, folder, truth, budget, cut in cells(options):
            line = {"data": name, "metric": SETS[name][2], "budget_s": budget, **({"cut": cut} if options.splits else {})}
            begin = time.time()
            if house.daemon is None:
                house.start()
                line["daemon_start_s"] = round(time.time() - begin, 2)
            line["ours"] = ours(house, name, folder, truth, budget, begin, options.spec)
            if options.peer_python:
                if (name, cut) not in scripted:
                    scripted[name, cut] = line["by_hand"] = by_hand(name, folder, truth, options)
                if options.splits:
                    line["by_hand"] = scripted[name, cut]
                else:
                    time.sleep(1)  # until the Worker has replaced its Ranks, so that the peer has the cores to itself
                    line["autogluon"] = autogluon(name, folder, truth, budget, options)
            print(json.dumps(line), flush=True)
            lines.append(line)
    summary = {"runs": len(lines), "ours_on_time": sum(not x["ours"]["late"] for x in lines)}
    if options.peer_python and options.splits:
        for line in gains(lines):
            print(json.dumps(line), flush=True)
    elif options.peer_python:
        on_time = [x for x in lines if x["autogluon"]["score_at_deadline"] is not None]
        summary["peer_on_time"] = len(on_time)
        summary["level"] = sum(is_level(x) for x in on_time)
    print(json.dumps({**summary, "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
