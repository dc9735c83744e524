"""Forecasts within a budget, beside statsforecast.

    tests/bench/series.sh [SET...] --data DIR [--budget S] [--windows N] [--series N] [--peer-python PYTHON] [--peer-rows N]
                          [--spec JSON]

The last rows of each series are the test rows, forecast from the end of the training rows. temperatures: daily, the last 28 of
3,650. pollution: hourly, the last 48 of the first 8,760; the target is the air's temperature, which has no gaps. many: 100
(--series) made monthly series of 72 to 132 rows, the last 12 of each; levels, trends, seasons and noise differ, half of them multiply. The
spec names the data, the horizon (the number of test rows), metric and budget; --spec adds fields. One JSON line for each set:
RMSE, MAE and MASE of ours with its floor's name and members, those of the last value, and those of each of statsforecast's models
(peers/statsforecast_peer.py, by a Python that has it), which are given the season. Both are timed from the start of the command to
the file. MASE (Hyndman, Koehler 2006): the MAE of a series divided by that of the seasonal naive forecast within its training rows,
then the mean over the series.

With --windows a set is forecast from N moments, each time by a new Job: of one series spread evenly over the later half of its
rows, of many a horizon apart. Then a last line for the set has means over the windows: RMSE, MAE and MASE, MAE divided by that of
the seasonal naive forecast with the given season in the same window, and in how many windows ours was better. A model that has no
answer in a window is named in `lacks`, with its number of windows, and has no means. One window tells little: errors of
neighbouring rows are of one weather.
"""
import argparse
import csv
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from tests.e2e.harness import House, rows_of

SETS = {  # target, time, series, rows of a season, test rows of each series
    "temperatures": ("Temp", "Date", "", 365, 28),
    "pollution": ("TEMP", "No", "", 24, 48),
    "many": ("value", "month", "name", 12, 12),
}
FIRST_YEAR = 8760


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def many_series(count):
    chance = random.Random(1)
    table = [["name", "month", "value"]]
    for number in range(count):
        rows, level, trend = chance.randrange(72, 133), 10 ** chance.uniform(1, 4), chance.gauss(0.02, 0.04)
        season = [chance.gauss(0, chance.choice((0.02, 0.1, 0.2))) for _ in range(12)]
        spread, walk = chance.uniform(0.01, 0.1), 0.0
        for i in range(rows):
            walk += chance.gauss(trend / 12, spread / 4)
            noise = chance.gauss(0, spread)
            if number % 2:
                value = level * math.exp(walk + season[i % 12] + noise)
            else:
                value = level * (3 + walk + season[i % 12] + noise)
            table.append([f"s{number}", f"{2010 + i // 12}-{1 + i % 12:02d}", f"{value:.6g}"])
    return table


def table_of(name, data, series):
    if name == "many":
        return many_series(series)
    file = os.path.join(data, {"temperatures": "daily_min_temperatures.csv", "pollution": "pollution.csv"}[name])
    if not os.path.exists(file):
        return None
    table = [row for row in rows_of(file) if row]
    if name == "temperatures":  # a few are written as ?0.2
        return [[cell.strip('"?') for cell in row] for row in table]
    drop = {"year", "month", "day", "hour", "pm2.5"}
    keep = [i for i, column in enumerate(table[0]) if column not in drop]
    return [[row[i] for i in keep] for row in table[:FIRST_YEAR + 1]]


class Window:
    """What is forecast once: the target's training and test values of each series, in the order of test.csv."""

    def __init__(self, season, parts):
        self.season, self.parts = season, parts
        self.truth = [value for _, truth in parts for value in truth]

    def scores(self, values):
        """Of forecasts in the order of test.csv."""
        scaled, errors = [], []
        for learnt, truth in self.parts:
            own = [values[len(errors) + i] - t for i, t in enumerate(truth)]
            steps = [abs(b - a) for a, b in zip(learnt, learnt[self.season:])]
            scaled.append(mean(map(abs, own)) / mean(steps))
            errors += own
        return {"rmse": round(math.sqrt(mean(e * e for e in errors)), 4), "mae": round(mean(map(abs, errors)), 4),
                "mase": round(mean(scaled), 4)}

    def seasonal_naive(self):
        return self.scores([learnt[i % self.season - self.season] for learnt, truth in self.parts for i in range(len(truth))])

    def last_value(self):
        return self.scores([learnt[-1] for learnt, truth in self.parts for _ in truth])


def split(name, table, folder, left_out=0):
    """Writes train.csv and test.csv, of all rows of each series but the last `left_out`."""
    target, _, series, season, last = SETS[name]
    header, rows = table[0], table[1:]
    groups = {}
    for row in rows:
        groups.setdefault(row[header.index(series)] if series else "", []).append(row)
    groups = [group[:len(group) - left_out] for group in groups.values()]
    train = [row for group in groups for row in group[:-last]]
    test = [row for group in groups for row in group[-last:]]
    at = header.index(target)
    blank = [[cell if i != at else "" for i, cell in enumerate(row)] for row in test]
    for part, lines in (("train", train), ("test", blank)):
        with open(os.path.join(folder, f"{part}.csv"), "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows([header, *lines])
    return Window(season, [([float(row[at]) for row in group[:-last]], [float(row[at]) for row in group[-last:]]) for group in groups])


def ours(house, name, folder, window, options):
    target, when, series, _, last = SETS[name]
    for part in ("train", "test"):
        shutil.copy(os.path.join(folder, f"{part}.csv"), house.data)
    spec = {"name": name, "cache": "off", "task": {"type": "forecasting", "metric": "mae"},
            "data": {"train": "train.csv", "test": "test.csv", "target": target, "time": when, "horizon": last},
            "budget": {"time": f"{options.budget}s"}}
    if series:
        spec["data"]["series"] = series
    spec.update(options.spec)
    begin = time.time()
    job = house.wait(house.json("submit", "-f", house.write_spec(spec))["id"], 2 * options.budget + 60)
    if job["state"] != "SUCCEEDED":
        return {"state": job["state"], "why": job.get("end_message")}
    file = os.path.join(house.results(job["id"]), "current", "predictions.csv")
    table = rows_of(file)
    at = table[0].index(target)
    with open(os.path.join(house.results(job["id"]), "floor", "floor.json"), encoding="utf-8") as f:
        floor = json.load(f)["generations"][0]
    return {**window.scores([float(row[at]) for row in table[1:]]), "wall_s": round(os.stat(file).st_mtime - begin, 2),
            "quality": job["quality"], "oof": job["scores"].get("oof"), "floor": floor["model"],
            "floor_oof": round(floor["score"], 4), "floor_weight": job["predictions"].get("floor_weight"),
            "members": [(m.get("kind"), round(m.get("weight", 0), 3)) for m in job["predictions"].get("members", [])]}


def summary(name, lines):
    """Means over windows."""
    models = {}
    for line in lines:
        answers = {"ours": line["ours"], "last_value": line["last_value"], "seasonal_naive": line["seasonal_naive"],
                   **line.get("statsforecast", {})}
        for model, told in answers.items():
            if isinstance(told, dict) and "mae" in told:
                models.setdefault(model, []).append(told)
    told, lacks = {}, {}
    for model, all_scores in models.items():
        if len(all_scores) < len(lines):
            lacks[model] = len(lines) - len(all_scores)
            continue
        ratios = [mine["mae"] / line["seasonal_naive"]["mae"] for mine, line in zip(all_scores, lines)]
        told[model] = {kind: round(mean(mine[kind] for mine in all_scores), 3) for kind in ("rmse", "mae", "mase")}
        told[model]["of_naive"] = round(math.exp(mean(map(math.log, ratios))), 3)
        if model != "ours" and len(models.get("ours", [])) == len(lines):
            told[model]["ours_better"] = sum(mine["mae"] < other["mae"] for mine, other in zip(models["ours"], all_scores))
    if any("error" in line.get("statsforecast", {}) for line in lines):
        lacks["statsforecast"] = sum("error" in line["statsforecast"] for line in lines)
    return {"data": name, "windows": len(lines), "means": told, "lacks": lacks}


def statsforecast(name, folder, window, options):
    target, when, series, season, _ = SETS[name]
    out = os.path.join(folder, "peer.csv")
    begin = time.time()
    done = subprocess.run([options.peer_python, "tests/bench/peers/statsforecast_peer.py", os.path.join(folder, "train.csv"),
                           os.path.join(folder, "test.csv"), target, when, series, str(season), out, str(options.peer_rows)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    table = rows_of(out)
    models = {model: window.scores([float(row[i]) for row in table[1:]]) for i, model in enumerate(table[0])}
    return {**models, "wall_s": round(os.stat(out).st_mtime - begin, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", default=".")
    parser.add_argument("--budget", default=30, type=int)
    parser.add_argument("--windows", default=1, type=int)
    parser.add_argument("--series", default=100, type=int, help="the number of series of the set `many`")
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-rows", default=1000, type=int, help="the last rows of a series that statsforecast fits")
    parser.add_argument("--spec", default={}, type=json.loads, help="fields that are added to the specs, as JSON")
    options = parser.parse_args()
    with House(slots=os.cpu_count()) as house:
        house.start()
        for name in options.sets or SETS:
            table = table_of(name, options.data, options.series)
            if table is None:
                print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                continue
            lines = []
            apart = SETS[name][4] if SETS[name][2] else len(table) // 2 // options.windows
            for number in range(options.windows):
                with tempfile.TemporaryDirectory(prefix="traind-series-") as folder:
                    window = split(name, table, folder, number * apart)
                    line = {"data": name, "budget_s": options.budget, "ours": ours(house, name, folder, window, options),
                            "last_value": window.last_value(), "seasonal_naive": window.seasonal_naive()}
                    if options.peer_python:
                        line["statsforecast"] = statsforecast(name, folder, window, options)
                    lines.append(line)
                    print(json.dumps(line), flush=True)
            if options.windows > 1:
                print(json.dumps(summary(name, lines)), flush=True)
    print(json.dumps({"load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
