"""LightGBM as a script by hand has it: its defaults, five folds, early stopping, the mean of the folds.

    python lightgbm_by_hand.py TRAIN.csv TEST.csv TARGET KIND OUT.csv

KIND is classification or regression. Writes OUT.csv (one column, the header is the target).
"""
import os
import sys

import lightgbm
import numpy
import pandas
from sklearn.model_selection import KFold, StratifiedKFold

ROUNDS, PATIENCE, FOLDS = 1000, 50, 5


def main():
    train, test, target, kind, out = sys.argv[1:6]
    learn, ask = (pandas.read_csv(f, skipinitialspace=True, na_values=["?"]) for f in (train, test))
    answers = learn.pop(target)
    ask = ask.drop(columns=[target], errors="ignore")
    for column in learn.columns:
        if not pandas.api.types.is_numeric_dtype(learn[column]):
            learn[column] = learn[column].astype("category")
            ask[column] = pandas.Categorical(ask[column], categories=learn[column].cat.categories)
    classes = kind == "classification"
    model = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=0)
    total = 0
    for rest, fold in folds.split(learn, answers):
        fitted = model(n_estimators=ROUNDS, n_jobs=os.cpu_count(), verbosity=-1)
        fitted.fit(learn.iloc[rest], answers.iloc[rest], eval_set=[(learn.iloc[fold], answers.iloc[fold])],
                   callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)])
        total = total + (fitted.predict_proba(ask) if classes else fitted.predict(ask)) / FOLDS
    values = fitted.classes_[numpy.argmax(total, axis=1)] if classes else total
    pandas.DataFrame({target: values}).to_csv(out + ".part", index=False)
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main()
