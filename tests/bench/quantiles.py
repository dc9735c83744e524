"""How well the quantiles of an answer hold on the test rows.

    tests/bench/quantiles.sh [SET...] --data DIR [--budget S] [--peer-python PYTHON] [--windows N]

The regressions of worth.py, each cut into training and test rows once for each of --splits seeds, and two series, of which the last
rows are forecast, from each of --windows moments. The
spec names the data, the target, the budget and the levels 0.05, 0.25, 0.5, 0.75, 0.95. One JSON line for each set, with means over
the splits: the share of true values at or below each level, the share inside the outer pair (0.9 is right), the mean width of that
interval, and the mean pinball loss over all levels; the last two are divided by the standard deviation of the test rows' target. With
--peer-python the same of LightGBM's quantile regression, a model with default settings for each level (peers/lightgbm_quantiles.py),
and of series the intervals of statsforecast's AutoETS (peers/statsforecast_quantiles.py). Of series, `thirds` has the shares inside
in the first, second and last third of the steps.
"""
import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

from tests.bench import series, worth
from tests.e2e.harness import House, rows_of

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
TABLES = ["wine", "housing", "imports"]
SERIES = ["temperatures", "pollution"]


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def write(folder, part, table):
    with open(os.path.join(folder, f"{part}.csv"), "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows(table)


def draw(name, data, seed, folder):
    """train.csv and test.csv, a fifth of the rows that have a target; the truth of the test rows. None: no such data."""
    tables = worth.tables_of(name, data)
    if tables is None:
        return None
    header = [column.strip() for column in tables[0][0]]
    at = header.index(worth.SETS[name][0])
    rows = [row for table in tables for row in table[1:] if number(row[at]) is not None]
    random.Random(seed).shuffle(rows)
    cut = len(rows) // 5
    write(folder, "train", [header] + rows[cut:])
    write(folder, "test", [header] + [row[:at] + [""] + row[at + 1:] for row in rows[:cut]])
    return [float(row[at]) for row in rows[:cut]]


def figures(quantiles, truth):
    """quantiles: a list of [levels] for each row."""
    spread = statistics.pstdev(truth)
    below = [sum(y <= row[q] for row, y in zip(quantiles, truth)) / len(truth) for q in range(len(LEVELS))]
    losses = [max(level * (y - at), (level - 1) * (y - at))
              for row, y in zip(quantiles, truth) for level, at in zip(LEVELS, row)]
    return {"below": below, "inside": sum(row[0] <= y <= row[-1] for row, y in zip(quantiles, truth)) / len(truth),
            "width": statistics.mean(row[-1] - row[0] for row in quantiles) / spread, "pinball": statistics.mean(losses) / spread}


def by_thirds(quantiles, truth, steps):
    """The shares inside the outer pair by how far ahead a row is."""
    shares = []
    for third in range(3):
        at = [i for i in range(len(truth)) if i % steps * 3 // steps == third]
        shares.append(round(sum(quantiles[i][0] <= truth[i] <= quantiles[i][-1] for i in at) / len(at), 3))
    return shares


def ours(house, name, folder, truth, spec, options):
    target = spec["target"]
    for part in ("train", "test"):
        os.replace(os.path.join(folder, f"{part}.csv"), os.path.join(house.data, f"{part}.csv"))
    job = house.submit({"name": name, "cache": "off", "data": {"train": "train.csv", "test": "test.csv", **spec},
                        "budget": {"time": f"{options.budget}s"}, "predictions": {"quantiles": LEVELS}}, "--wait")
    table = rows_of(job["predictions"]["path"])
    columns = [table[0].index(f"{target}_q{level:g}") for level in LEVELS]
    return [[float(row[at]) for at in columns] for row in table[1:]]


def on_series(house, name, folder, options):
    target, when, _, season, last = series.SETS[name]
    table = series.table_of(name, options.data, series=0)
    if table is None:
        return {"data": name, "skipped": f"not in {options.data}"}
    truth, answers = [], {"ours": [], "statsforecast": []}
    for number in range(options.windows):
        window = series.split(name, table, folder, number * (len(table) // 2 // options.windows))
        truth += window.truth
        if options.peer_python:
            out = os.path.join(folder, "peer.csv")
            subprocess.run([options.peer_python, "tests/bench/peers/statsforecast_quantiles.py", os.path.join(folder, "train.csv"),
                            target, str(season), str(last), out] + [str(level) for level in LEVELS], check=True)
            answers["statsforecast"] += [[float(cell) for cell in row] for row in rows_of(out)[1:]]
        spec = {"target": target, "time": when, "horizon": last}
        answers["ours"] += ours(house, name, folder, window.truth, spec, options)
    told = {"data": name, "windows": options.windows, "test_rows": len(truth)}
    for who, quantiles in answers.items():
        if quantiles:
            told[who] = {**mean([figures(quantiles, truth)]), "thirds": by_thirds(quantiles, truth, last)}
    return told


def peer(folder, target, truth, options):
    out = os.path.join(folder, "peer.csv")
    subprocess.run([options.peer_python, "tests/bench/peers/lightgbm_quantiles.py", os.path.join(folder, "train.csv"),
                    os.path.join(folder, "test.csv"), target, out] + [str(level) for level in LEVELS], check=True)
    return figures([[float(cell) for cell in row] for row in rows_of(out)[1:]], truth)


def mean(runs):
    if not runs:
        return None
    told = {key: round(statistics.mean(run[key] for run in runs), 3) for key in ("inside", "width", "pinball")}
    told["below"] = [round(statistics.mean(run["below"][q] for run in runs), 3) for q in range(len(LEVELS))]
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", choices=[*TABLES, *SERIES, []])
    parser.add_argument("--data", required=True)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--windows", type=int, default=1)
    parser.add_argument("--peer-python")
    options = parser.parse_args()
    with House(slots=os.cpu_count()) as house, tempfile.TemporaryDirectory(prefix="traind-quantiles-") as folder:
        house.start()
        for name in options.sets or [*TABLES, *SERIES]:
            if name in SERIES:
                print(json.dumps(on_series(house, name, folder, options)), flush=True)
                continue
            mine, theirs, rows = [], [], 0
            for seed in range(options.splits):
                truth, spec = draw(name, options.data, seed, folder), {"target": worth.SETS[name][0]}
                if truth is None:
                    print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                    break
                if options.peer_python:
                    theirs.append(peer(folder, spec["target"], truth, options))
                mine.append(figures(ours(house, name, folder, truth, spec, options), truth))
                rows += len(truth)
            if mine:
                print(json.dumps({"data": name, "test_rows": rows, "ours": mean(mine), "lightgbm": mean(theirs)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
