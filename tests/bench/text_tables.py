#!/usr/bin/env python3
"""Writes tables with names, titles and amounts with units for worth.sh, from files that their publishers offer.

    python3 -m venv V && V/bin/pip install pandas
    V/bin/python tests/bench/text_tables.py --files DIR --out TABLES
    tests/bench/worth.sh --tables TABLES/sets.json --budgets 10 [--spec '{"data": {"text_features": false}}']

DIR holds those of these files that you have, by their usual names: Kaggle's titanic train.csv as ship.csv, CarPrice_Assignment.csv,
used cars' train-data.csv, googleplaystore.csv, ramen-ratings.csv and ds_salaries.csv; auto-mpg.csv of UCI with its header; movies.json
of Vega's data sets; FiveThirtyEight's marvel-wikia-data.csv, and its movies.csv about the Bechdel test as bechdel.csv. Each table is
shuffled; every fourth row is a test row. Numbers of rows, and columns that tell the target by another name, are left out.
"""
import argparse
import json
import os

ACCURACY, RMSE = "accuracy", "rmse"
TABLES = {  # name: file, target, metric, columns left out
    "ship": ("ship.csv", "Survived", ACCURACY, ["PassengerId"]),
    "mpg": ("auto-mpg.csv", "mpg", RMSE, []),
    "salaries": ("ds_salaries.csv", "salary_in_usd", RMSE, ["salary", "salary_currency"]),
    "carprice": ("CarPrice_Assignment.csv", "price", RMSE, ["car_ID"]),
    "oldcars": ("train-data.csv", "Price", RMSE, []),
    "play": ("googleplaystore.csv", "Rating", RMSE, []),
    "ramen": ("ramen-ratings.csv", "Rating", RMSE, ["ID"]),
    "films": ("movies.json", "IMDB Rating", RMSE, ["Rotten Tomatoes Rating"]),
    "marvel": ("marvel-wikia-data.csv", "ALIGN", ACCURACY, ["page_id", "urlslug"]),
    "bechdel": ("bechdel.csv", "binary", ACCURACY, ["test", "clean_test", "code", "imdb"]),
}


def read(path):
    import pandas
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as f:
            return pandas.DataFrame(json.load(f))
    with open(path, encoding="utf-8") as f:
        tabs = "\t" in f.readline()
    rows = pandas.read_csv(path, sep="\t" if tabs else ",")
    return rows[[name for name in rows if not name.startswith("Unnamed")]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    import pandas
    os.makedirs(options.out, exist_ok=True)
    sets = {}
    for name, (file, target, metric, left_out) in TABLES.items():
        path = os.path.join(options.files, file)
        if not os.path.exists(path):
            print(f"{name}: skipped, there is no {file}")
            continue
        rows = read(path).drop(columns=left_out).dropna(subset=[target])
        if metric == RMSE:
            rows = rows[pandas.to_numeric(rows[target], errors="coerce").notna()]
        if name == "play":
            rows = rows[pandas.to_numeric(rows[target]).between(1, 5)]
        rows = rows.sample(frac=1, random_state=1).reset_index(drop=True)
        test = rows.index % 4 == 3
        rows[~test].to_csv(os.path.join(options.out, f"{name}_train.csv"), index=False)
        rows[test].to_csv(os.path.join(options.out, f"{name}_test.csv"), index=False)
        sets[name] = [target, metric]
    with open(os.path.join(options.out, "sets.json"), "w", encoding="utf-8") as f:
        json.dump(sets, f)


if __name__ == "__main__":
    main()
