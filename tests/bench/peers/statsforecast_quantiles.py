"""Quantiles of statsforecast's AutoETS for the rows after a series.

    python statsforecast_quantiles.py TRAIN.csv TARGET SEASON STEPS OUT.csv LEVEL...

LEVELs come in pairs around 0.5, which may be among them. Writes OUT.csv: a row for each step, a column for each level. Missing
values are interpolated; the last 1,000 values or five seasons are fitted.
"""
import sys

import numpy
import pandas
from statsforecast.models import AutoETS


def main():
    train, target, season, steps, out, *levels = sys.argv[1:]
    season, steps, levels = int(season), int(steps), [float(level) for level in levels]
    values = pandas.read_csv(train)[target].interpolate().bfill().to_numpy(numpy.float64)
    # A season of a year of days is beyond what AutoETS fits.
    model = AutoETS(season_length=season if season <= 24 else 1).fit(values[-max(1000, 5 * season):])
    widths = sorted({round(100 * abs(1 - 2 * level), 6) for level in levels if level != 0.5})
    told = model.predict(h=steps, level=widths)
    answers = pandas.DataFrame()
    for level in levels:
        width = round(100 * abs(1 - 2 * level), 6)
        side = "mean" if level == 0.5 else f"{'lo' if level < 0.5 else 'hi'}-{width:g}"
        answers[f"{level:g}"] = told.get(side, told.get(f"{side}.0"))
    answers.to_csv(out, index=False)


if __name__ == "__main__":
    main()
