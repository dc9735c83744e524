#!/usr/bin/env python3
"""What the losses of counts are worth: mse, poisson and tweedie on the same made table, by networks and trees.

    PYTHONPATH=$PWD python3 tests/bench/counts.py [--seeds N]

4,000 training and 2,000 test rows; the mean of a row's Poisson count is exp(a + b c - c^2 + place), and two of five counts are 0.
Jobs with no other settings. One line for each model and loss: the means over N seeds of the folds (default 3).
"""
import argparse
import json
import math
import os
import random
import statistics

from tests.e2e.harness import House, poisson, rows_of

PLACES = {"a": -1.5, "b": -0.5, "c": 0.5, "d": 1, "e": 1.5}


def table(rows, seed, first):
    chance = random.Random(seed)
    text = "id,a,b,c,d,place,visits\n"
    for i in range(rows):
        a, b, c, d = (chance.gauss(0, 1) for _ in range(4))
        place = chance.choice("abcde")
        mean = math.exp(0.6 * a + 0.4 * b * (c > 0) - 0.3 * c * c + PLACES[place])
        text += f"{first + i},{a:.4f},{b:.4f},{c:.4f},{d:.4f},{place},{poisson(chance, mean)}\n"
    return text


def deviance(y, answer):
    mean = max(answer, 1e-3)
    return 2 * ((y * math.log(y / mean) if y else 0) - y + mean)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    with House(slots=2) as house:
        house.start()
        house.write("train.csv", table(4000, 1, 0))
        house.write("test.csv", table(2000, 2, 4000))
        truth = [float(row[6]) for row in rows_of(os.path.join(house.data, "test.csv"))[1:]]
        for model in ("mlp", "lightgbm", "xgboost"):
            for loss in ("mse", "poisson", "tweedie"):
                errors, deviances, negative = [], [], []
                for seed in range(options.seeds):
                    job = house.submit({
                        "name": "counts", "cache": "off", "task": {"type": "regression"},
                        "data": {"train": "train.csv", "test": "test.csv", "target": "visits", "id": "id", "folds": 5, "seed": seed},
                        "model": {model: {}}, "train": {"loss": {"kind": loss}}, "budget": {"time": "120s"}}, "--wait")
                    answers = [float(row[1]) for row in rows_of(job["predictions"]["path"])[1:]]
                    errors.append(math.sqrt(statistics.fmean((a - y) ** 2 for a, y in zip(answers, truth))))
                    deviances.append(statistics.fmean(map(deviance, truth, answers)))
                    negative.append(sum(a < 0 for a in answers))
                print(json.dumps({"model": model, "loss": loss, "rmse": round(statistics.fmean(errors), 3),
                                  "deviance": round(statistics.fmean(deviances), 3),
                                  "negative_answers": round(statistics.fmean(negative))}), flush=True)


if __name__ == "__main__":
    main()
