"""Forecasts within a budget, beside statsforecast.

    tests/bench/series.sh [SET...] --data DIR [--budget S] [--windows N] [--peer-python PYTHON] [--peer-rows N] [--spec JSON]

The last rows of each series are the test rows, forecast from the end of the training rows. temperatures: daily, the last 28 of
3,650. pollution: hourly, the last 48 of the first 8,760; the target is the air's temperature, which has no gaps. many: 100
made monthly series of 72 to 132 rows, the last 12 of each; levels, trends, seasons and noise differ, half of them multiply. The
spec names the data, the horizon (the number of test rows), metric and budget; --spec adds fields. One JSON line for each set:
RMSE and MAE of ours with its floor's name and members, and those of each of statsforecast's models (peers/statsforecast_peer.py,
by a Python that has it), which are given the season. Both are timed from the start of the command to the file.

With --windows a set of one series is forecast from N moments, spread evenly over the later half of its rows, each time by a new
Job. Then a last line for the set has means over the windows: MAE, MAE divided by that of the seasonal naive forecast with the
given season in the same window, and in how many windows ours was better. One window tells little: errors of neighbouring rows are
of one weather.
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


def many_series():
    chance = random.Random(1)
    table = [["name", "month", "value"]]
    for number in range(100):
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


def table_of(name, data):
    if name == "many":
        return many_series()
    file = os.path.join(data, {"temperatures": "daily_min_temperatures.csv", "pollution": "pollution.csv"}[name])
    if not os.path.exists(file):
        return None
    table = [row for row in rows_of(file) if row]
    if name == "temperatures":  # a few are written as ?0.2
        return [[cell.strip('"?') for cell in row] for row in table]
    drop = {"year", "month", "day", "hour", "pm2.5"}
    keep = [i for i, column in enumerate(table[0]) if column not in drop]
    return [[row[i] for i in keep] for row in table[:FIRST_YEAR + 1]]


def split(name, table, folder, left_out=0):
    """Writes train.csv and test.csv, of all rows but the last `left_out`; returns the test rows' truth."""
    target, _, series, _, last = SETS[name]
    header, rows = table[0], table[1:len(table) - left_out]
    groups = {}
    for row in rows:
        groups.setdefault(row[header.index(series)] if series else "", []).append(row)
    train = [row for group in groups.values() for row in group[:-last]]
    test = [row for group in groups.values() for row in group[-last:]]
    at = header.index(target)
    blank = [[cell if i != at else "" for i, cell in enumerate(row)] for row in test]
    for part, lines in (("train", train), ("test", blank)):
        with open(os.path.join(folder, f"{part}.csv"), "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows([header, *lines])
    return [float(row[at]) for row in test]


def scores(values, truth):
    errors = [value - t for value, t in zip(values, truth)]
    return {"rmse": round(math.sqrt(sum(e * e for e in errors) / len(errors)), 4),
            "mae": round(sum(abs(e) for e in errors) / len(errors), 4)}


def ours(house, name, folder, truth, options):
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
    return {**scores([float(row[at]) for row in table[1:]], truth), "wall_s": round(os.stat(file).st_mtime - begin, 2),
            "quality": job["quality"], "oof": job["scores"].get("oof"), "floor": floor["model"],
            "floor_oof": round(floor["score"], 4), "floor_weight": job["predictions"].get("floor_weight"),
            "members": [(m.get("kind"), round(m.get("weight", 0), 3)) for m in job["predictions"].get("members", [])]}


def seasonal_naive(name, table, left_out):
    """The MAE of the value one season before, on the test rows of a window."""
    target, _, _, season, last = SETS[name]
    at = table[0].index(target)
    values = [float(row[at]) for row in table[1:len(table) - left_out]]
    begin = len(values) - last
    errors = [abs(values[begin + i] - values[begin + i % season - season]) for i in range(last)]
    return sum(errors) / len(errors)


def summary(name, lines):
    """Means over windows."""
    models = {"ours": [line["ours"]["mae"] for line in lines]}
    for line in lines:
        for model, told in line.get("statsforecast", {}).items():
            if isinstance(told, dict):
                models.setdefault(model, []).append(told["mae"])
    naive = [line["seasonal_naive"] for line in lines]
    told = {}
    for model, errors in models.items():
        if len(errors) < len(lines):
            continue
        ratios = [error / base for error, base in zip(errors, naive)]
        told[model] = {"mae": round(sum(errors) / len(errors), 3), "of_naive": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3)}
        if model != "ours":
            told[model]["ours_better"] = sum(mine < error for mine, error in zip(models["ours"], errors))
    return {"data": name, "windows": len(lines), "means": told}


def statsforecast(name, folder, truth, options):
    target, when, series, season, _ = SETS[name]
    out = os.path.join(folder, "peer.csv")
    begin = time.time()
    done = subprocess.run([options.peer_python, "tests/bench/peers/statsforecast_peer.py", os.path.join(folder, "train.csv"),
                           os.path.join(folder, "test.csv"), target, when, series, str(season), out, str(options.peer_rows)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    table = rows_of(out)
    models = {model: scores([float(row[i]) for row in table[1:]], truth) for i, model in enumerate(table[0])}
    return {**models, "wall_s": round(os.stat(out).st_mtime - begin, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", default=".")
    parser.add_argument("--budget", default=30, type=int)
    parser.add_argument("--windows", default=1, type=int)
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-rows", default=1000, type=int, help="the last rows of a series that statsforecast fits")
    parser.add_argument("--spec", default={}, type=json.loads, help="fields that are added to the specs, as JSON")
    options = parser.parse_args()
    with House(slots=os.cpu_count()) as house:
        house.start()
        for name in options.sets or SETS:
            table = table_of(name, options.data)
            if table is None:
                print(json.dumps({"data": name, "skipped": f"not in {options.data}"}), flush=True)
                continue
            lines = []
            windows = 1 if SETS[name][2] else options.windows
            for window in range(windows):
                left_out = window * (len(table) // 2 // windows)
                with tempfile.TemporaryDirectory(prefix="traind-series-") as folder:
                    truth = split(name, table, folder, left_out)
                    line = {"data": name, "budget_s": options.budget, "ours": ours(house, name, folder, truth, options)}
                    if windows > 1:
                        line["seasonal_naive"] = round(seasonal_naive(name, table, left_out), 4)
                    if options.peer_python:
                        line["statsforecast"] = statsforecast(name, folder, truth, options)
                    lines.append(line)
                    print(json.dumps(line), flush=True)
            if windows > 1:
                print(json.dumps(summary(name, lines)), flush=True)
    print(json.dumps({"load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
