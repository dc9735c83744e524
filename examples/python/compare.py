"""Gives several kinds of models the same ten seconds at the same time, and plots their curves (needs pandas and matplotlib).

    TRAIND_HOME=... python3 examples/python/compare.py CURVES.png
"""
import sys

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")
from matplotlib import pyplot

import traind


def table(rows):
    chance = np.random.default_rng(7)
    frame = pd.DataFrame(chance.normal(size=(rows, 4)), columns=list("abcd"))
    frame["kind"] = np.where(frame.a * frame.b > 0.3, "warm", np.where(frame.c > frame.d, "mild", "cold"))
    return frame


def main(path):
    with traind.start() as client:
        jobs = {kind: client.submit({"name": kind, "data": {"train": table(2000), "target": "kind"}, "budget": "10s",
                                     "model": {kind: {}}}) for kind in ("mlp", "lightgbm", "xgboost")}
        axes = pyplot.subplots(1, len(jobs), figsize=(12, 4), sharey=True)[1]
        for ax, (kind, job) in zip(axes, jobs.items()):
            job.wait()
            job.plot("val_metric", ax=ax)
            ax.set_title(f"{kind}: {job.scores['oof']:.3f}")
        axes[0].figure.savefig(path)
        print(pd.DataFrame({kind: job.scores for kind, job in jobs.items()}).T)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "curves.png")
