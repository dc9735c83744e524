"""Seasonal naive, AutoETS and Theta of statsforecast, and the mean of the three.

    python statsforecast_peer.py TRAIN.csv TEST.csv TARGET TIME SERIES SEASON OUT.csv ROWS

SERIES is the column of the series, '' where there is one. Writes OUT.csv: a row for each row of TEST.csv, a column for each
model and `mean`. Missing values are interpolated. Only the last ROWS values are fitted, or five seasons: AutoETS takes minutes for
more than 1,000.
"""
import os
import sys

import numpy
import pandas
from statsforecast.models import AutoETS, SeasonalNaive, Theta


def main():
    train, test, target, time, series, season, out, most = sys.argv[1:9]
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
            fitted = fitted.new().fit(values[-max(int(most), 5 * season):])
            answers.loc[rows.index, model] = fitted.predict(h=len(rows))["mean"]
    answers["mean"] = answers.mean(axis=1)
    answers.to_csv(out + ".part", index=False)
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main()
