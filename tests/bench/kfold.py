#!/usr/bin/env python3
"""A k-fold MLP by traind, and the same by a careful PyTorch script, in turn.

    tests/bench/kfold.sh [--batches 512,128] [--rounds 3] [--rows 60000] [--epochs 10] [--processes 2]

Both train five folds of the same MLP (64 columns, 256, 256) for the same epochs with the same batches, learning rate and
AdamW, validate each epoch, and predict 20,000 test rows by the mean of the folds. The script (peers/pytorch_kfold.py) is
tuned: data in memory as .npy files, the fused optimizer, a process of one thread for each core. traind reads a CSV file;
its daemon runs already. Both are timed by the clock from the start of the command to the prediction file.

One JSON line for each batch size: the medians of both times (ours_s, peer_s), ratio (their median over the rounds, each
peer_s / ours_s), and the RMSE of both on the test rows.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from tests.bench.generate_data import tabular
from tests.e2e.harness import House

FOLDS, TEST_ROWS, RATE = 5, 20_000, 1e-3
HERE = os.path.dirname(os.path.abspath(__file__))


def write(rows, folder):
    """The files of both sides; the target of the test rows."""
    arrays, _ = tabular(rows + TEST_ROWS)
    x, y = arrays["tab_x"], arrays["tab_y"]
    for name, values in (("x", x[:rows]), ("y", y[:rows]), ("test_x", x[rows:])):
        np.save(os.path.join(folder, f"{name}.npy"), values)
    names = [f"x{i}" for i in range(x.shape[1])]
    np.savetxt(os.path.join(folder, "train.csv"), np.column_stack([x, y])[:rows], "%.9g", ",",
               header=",".join(names + ["y"]), comments="")
    np.savetxt(os.path.join(folder, "test.csv"), x[rows:], "%.9g", ",", header=",".join(names), comments="")
    return y[rows:]


def rmse(path, truth):
    with open(path, newline="", encoding="utf-8") as f:
        answers = [float(row["y"]) for row in csv.DictReader(f)]
    return float(np.sqrt(np.mean((np.array(answers) - truth) ** 2)))


def ours(house, batch, options):
    spec = house.write_spec({
        "name": "kfold", "cache": "off", "task": {"metric": "rmse"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": FOLDS},
        "model": {"mlp": {"hidden": [256, 256], "dropout": 0.0}},
        "train": {"epochs": options.epochs, "batch": batch, "learning_rate": RATE, "clip_norm": 0, "patience": 0,
                  "schedule": {"kind": "constant", "warmup_steps": 0}},
        "budget": {"time": "10m"}})
    begin = time.time()
    job = house.json("submit", "-f", spec, "--wait")
    seconds = time.time() - begin
    job = house.job(job["id"])
    assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
    assert all(round(f["progress"]["done"]) == options.epochs for f in job["folds"]), job["folds"]
    return seconds, job["predictions"]["path"]


def peer(house, batch, options):
    out = os.path.join(house.root, "peer.csv")
    begin = time.time()
    subprocess.run([sys.executable, os.path.join(HERE, "peers", "pytorch_kfold.py"), house.data, out, "--batch", str(batch),
                    "--epochs", str(options.epochs), "--folds", str(FOLDS), "--processes", str(options.processes),
                    "--rate", str(RATE)], check=True, stdout=subprocess.DEVNULL)
    return time.time() - begin, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", default="512,128")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with House(slots=options.processes) as house:
        truth = write(options.rows, house.data)
        house.start()
        for batch in map(int, options.batches.split(",")):
            times = {ours: [], peer: []}
            scores = {}
            for turn in range(options.rounds):
                for side in (ours, peer) if turn % 2 == 0 else (peer, ours):
                    seconds, path = side(house, batch, options)
                    times[side].append(seconds)
                    scores[side] = rmse(path, truth)
            ratios = [theirs / own for own, theirs in zip(times[ours], times[peer])]
            print(json.dumps({
                "batch": batch, "ours_s": round(statistics.median(times[ours]), 2),
                "peer_s": round(statistics.median(times[peer]), 2), "ratio": round(statistics.median(ratios), 2),
                "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
                "ours_rmse": round(scores[ours], 4), "peer_rmse": round(scores[peer], 4), "load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
