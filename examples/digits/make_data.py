#!/usr/bin/env python3
"""Writes train.csv and test.csv from the digits that ship with scikit-learn.

    make_data.py [FOLDER]     # needs scikit-learn; the files are committed

The rows and their order are the same every time: every fifth row of each digit,
in the set's own order, is a test row.
"""
import csv
import pathlib
import sys

from sklearn.datasets import load_digits


def main(folder):
    digits = load_digits()
    columns = ["id"] + [f"p{i:02}" for i in range(64)] + ["digit"]
    seen = [0] * 10
    rows = {"train.csv": [], "test.csv": []}
    for number, (pixels, digit) in enumerate(zip(digits.data, digits.target)):
        name = "test.csv" if seen[digit] % 5 == 4 else "train.csv"
        seen[digit] += 1
        rows[name].append([number] + [int(p) for p in pixels] + [int(digit)])
    for name, table in rows.items():
        with open(folder / name, "w", newline="") as f:
            writer = csv.writer(f, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(table)
        print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
