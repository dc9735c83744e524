"""Seasonal naive, AutoETS and Theta of statsforecast, and the mean of the three.

    python statsforecast_peer.py TRAIN.csv TEST.csv TARGET TIME SERIES SEASON OUT.csv

SERIES is the column of the series, '' where there is one. Writes OUT.csv: a row for each row of TEST.csv, a column for each
model and `mean`. Missing values are interpolated.
"""
import os
import sys

import numpy
import pandas
from statsforecast.models import AutoETS, SeasonalNaive, Theta

MOST_ROWS = 1000  # AutoETS takes minutes for longer series; ours fits on as many


def main():
    train, test, target, time, series, season, out = sys.argv[1:8]
    learn, ask = pandas.read_csv(train), pandas.read_csv(test)
    if not series:
        series = "series"
        learn[series] = ask[series] = 0
    answers = pandas.DataFrame(index=ask.index)
    season = int(season)
    models = {"naive": SeasonalNaive(season), "ets": AutoETS(season_length=season), "theta": Theta(season_length=season)}
    for name, rows in ask.sort_values(time).groupby(series):
        values = learn[learn[series] == name].sort_values(time)[target].interpolate().bfill().to_numpy(numpy.float64)
        for model, fitted in models.items():
            fitted = fitted.new().fit(values[-max(MOST_ROWS, 5 * season):])
            answers.loc[rows.index, model] = fitted.predict(h=len(rows))["mean"]
    answers["mean"] = answers.mean(axis=1)
    answers.to_csv(out + ".part", index=False)
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main()
