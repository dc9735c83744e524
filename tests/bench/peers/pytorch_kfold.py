#!/usr/bin/env python3
"""A k-fold MLP as a careful script by hand has it: the PyTorch peer of kfold.py.

    python pytorch_kfold.py DIR OUT.csv --batch B --epochs E --folds K --processes P --rate R

DIR has x.npy [rows, columns] float32, y.npy [rows] and test_x.npy. All data stay in memory, columns and target are
standardized by the rows that a fold trains on, AdamW is fused, and P processes of one thread each train the folds. Each epoch
validates, and the epoch with the best validation predicts. Writes OUT.csv, the mean of the folds, and prints a JSON line: the
RMSE of the rows that a fold did not train on, and the seconds that each fold took.
"""
import argparse
import json
import multiprocessing
import os
import time

import numpy as np

HIDDEN, SEED = 256, 7


def train(job):
    options, fold = job
    import torch
    from torch import nn
    torch.set_num_threads(1)
    torch.manual_seed(SEED + fold)
    begin = time.perf_counter()
    x, y, test = (torch.from_numpy(np.load(os.path.join(options.data, f"{n}.npy"))) for n in ("x", "y", "test_x"))
    of = torch.from_numpy(np.random.default_rng(SEED).permutation(len(x)) % options.folds)
    held, rest = (of == fold).nonzero().flatten(), (of != fold).nonzero().flatten()
    learn_x, learn_y = x[rest], y[rest]
    mean, deviation, center, scale = learn_x.mean(0), learn_x.std(0), learn_y.mean(), learn_y.std()
    learn_x, learn_y = (learn_x - mean) / deviation, (learn_y - center) / scale
    held_x, test = (x[held] - mean) / deviation, (test - mean) / deviation
    model = nn.Sequential(nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01, fused=True)
    loss_of, best, weights = nn.MSELoss(), float("inf"), None
    for _ in range(options.epochs):
        order = torch.randperm(len(learn_x))
        for at in range(0, len(order), options.batch):
            rows = order[at:at + options.batch]
            loss = loss_of(model(learn_x[rows]).squeeze(1), learn_y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        with torch.inference_mode():
            error = float(((model(held_x).squeeze(1) * scale + center - y[held]) ** 2).mean())
        if error < best:
            best, weights = error, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    with torch.inference_mode():
        answers = model(test).squeeze(1) * scale + center
    return best * len(held), answers.numpy(), time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--folds", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        folds = pool.map(train, [(options, fold) for fold in range(options.folds)], chunksize=1)
    rows = len(np.load(os.path.join(options.data, "y.npy"), mmap_mode="r"))
    mean = sum(answers for _, answers, _ in folds) / len(folds)
    with open(options.out + ".part", "w", encoding="utf-8") as f:
        f.write("y\n" + "".join(f"{value:.9g}\n" for value in mean))
    os.replace(options.out + ".part", options.out)
    print(json.dumps({"out_of_fold": (sum(squares for squares, _, _ in folds) / rows) ** 0.5,
                      "fold_s": [round(s, 2) for _, _, s in folds]}), flush=True)


if __name__ == "__main__":
    main()
