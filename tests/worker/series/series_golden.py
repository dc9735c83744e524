"""Prints the numbers of series_models_test.cc.

    pip install statsmodels==0.15.0 && python3 series_golden.py
"""
import warnings

import numpy as np
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.seasonal import seasonal_decompose

warnings.simplefilter("ignore")
ROWS, PERIOD, STEPS = 120, 12, 15


def series(kind):
    t = np.arange(ROWS)
    noise = (t * 7919 % 101) / 101 - 0.5
    season = 10 * np.sin(2 * np.pi * t / PERIOD)
    if kind == "walk":
        return 20 + np.cumsum(4 * noise)
    if kind == "trend":
        return 50 + 0.3 * t + 6 * noise + np.cumsum(noise)
    return 50 + 0.3 * t + season + 6 * noise


def line(name, values):
    print(name, "{" + ", ".join(f"{x:.9g}" for x in values) + "}")


def fixed(kind, trend, damped, seasonal, weights, level, slope, season):
    model = ETSModel(series(kind), error="add", trend="add" if trend else None, damped_trend=damped,
                     seasonal="add" if seasonal else None, seasonal_periods=PERIOD if seasonal else None,
                     initialization_method="known", initial_level=level,
                     initial_trend=slope if trend else None, initial_seasonal=season if seasonal else None)
    result = model.smooth(np.array(weights + [level] + ([slope] if trend else [])
                                   + (list(season[::-1]) if seasonal else [])))
    line(f"fixed {kind}: squares {np.sum(result.resid ** 2):.9g} forecast", result.forecast(STEPS))


def fitted(kind, trend, damped, seasonal):
    model = ETSModel(series(kind), error="add", trend="add" if trend else None, damped_trend=damped,
                     seasonal="add" if seasonal else None, seasonal_periods=PERIOD if seasonal else None)
    result = model.fit(disp=False, maxiter=10000)
    line(f"fitted {kind} {trend}{damped}{seasonal}: squares {np.sum(result.resid ** 2):.9g} forecast",
         result.forecast(STEPS))


season = [10 * np.sin(2 * np.pi * i / PERIOD) for i in range(PERIOD)]
fixed("walk", False, False, False, [0.3], 20, 0, [])
fixed("trend", True, False, False, [0.3, 0.1], 50, 0.5, [])
fixed("trend", True, True, False, [0.3, 0.1, 0.9], 50, 0.5, [])
fixed("season", True, True, True, [0.3, 0.1, 0.2, 0.9], 50, 0.5, np.array(season))
fitted("walk", False, False, False)
fitted("trend", True, False, False)
fitted("season", True, False, True)
for kind in ("trend", "season"):
    result = ThetaModel(series(kind), period=PERIOD).fit()
    line(f"theta {kind}", result.forecast(STEPS))
line("additive", seasonal_decompose(series("season"), model="additive", period=PERIOD).seasonal[:PERIOD])
line("multiplicative", seasonal_decompose(series("season"), model="multiplicative", period=PERIOD).seasonal[:PERIOD])
