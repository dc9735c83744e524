"""Trains a network on handwritten digits and predicts the test rows. It runs alone and under `trainctl run`.

    python3 train_torch.py --data ../digits [--epochs 20]       # needs torch

It writes model.pt and submission.csv. Its own lines of traind_run are marked with (traind); without traind they do
nothing.
"""
import argparse
import csv
import os
import time

import torch
from traind_run import run  # (traind)


def read(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    pixels = [[float(row[f"p{i:02}"]) / 16 for i in range(64)] for row in rows]
    return [row["id"] for row in rows], torch.tensor(pixels), torch.tensor([int(row["digit"]) for row in rows])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that each epoch takes besides")
    arguments = parser.parse_args()
    torch.manual_seed(run.seed)
    _, x, y = read(os.path.join(arguments.data, "train.csv"))
    ids, test_x, test_y = read(os.path.join(arguments.data, "test.csv"))
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    path = run.resume()  # (traind)
    if path:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        print(f"goes on after epoch {run.resumed}", flush=True)
    for epoch in run.epochs(arguments.epochs, start=run.resumed):  # (traind)
        model.train()
        for rows in torch.randperm(len(x)).split(64):
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        time.sleep(arguments.pause)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "model.pt")
        run.checkpoint("model.pt")  # (traind)
        run.report(loss=loss)  # (traind)
        print(f"epoch {epoch + 1}/{arguments.epochs} loss {loss.item():.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        answers = model(test_x).argmax(1)
    with open("submission.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["id", "digit"])
        writer.writerows(zip(ids, answers.tolist()))
    print(f"accuracy {float((answers == test_y).float().mean()):.3f}")


if __name__ == "__main__":
    main()
