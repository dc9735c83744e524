"""LightGBM's quantile regression with its defaults: one model for each level.

    python lightgbm_quantiles.py TRAIN.csv TEST.csv TARGET OUT.csv LEVEL...

Writes OUT.csv, a column for each level.
"""
import os
import sys

import lightgbm
import pandas


def main():
    train, test, target, out = sys.argv[1:5]
    learn, ask = (pandas.read_csv(f, skipinitialspace=True, na_values=["?"]) for f in (train, test))
    answers = learn.pop(target)
    ask = ask.drop(columns=[target], errors="ignore")
    for column in learn.columns:
        if not pandas.api.types.is_numeric_dtype(learn[column]):
            learn[column] = learn[column].astype("category")
            ask[column] = pandas.Categorical(ask[column], categories=learn[column].cat.categories)
    told = {level: lightgbm.LGBMRegressor(objective="quantile", alpha=float(level), n_jobs=os.cpu_count(), verbosity=-1)
            .fit(learn, answers).predict(ask) for level in sys.argv[5:]}
    pandas.DataFrame(told).to_csv(out, index=False)


if __name__ == "__main__":
    main()
