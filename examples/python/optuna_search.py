"""Optuna proposes the settings of a Job's trials, and traind trains them against the clock.

    pip install optuna pandas
    python3 optuna_search.py train.csv test.csv TARGET [BUDGET]
"""
import sys

import optuna
import traind

train, test, target = sys.argv[1:4]
job = traind.connect().submit({
    "data": {"train": train, "test": test, "target": target},
    "model": {"lightgbm": {}},
    "search": {"method": "ask", "trials": 40, "space": {"model.lightgbm.learning_rate": "log(0.01, 0.3)",
                                                        "model.lightgbm.num_leaves": "int(4, 128)"}},
    "budget": {"time": sys.argv[4] if len(sys.argv) > 4 else "60s"}})
study = optuna.create_study(direction="maximize")


def ask():
    trial = study.ask()
    return trial, {"learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
                   "num_leaves": trial.suggest_int("num_leaves", 4, 128)}


def tell(trial, result):
    gain = result.get("gain")
    study.tell(trial, gain, state=None if gain is not None else optuna.trial.TrialState.FAIL)


job.ask_tell(ask, tell)
print(study.best_params, job.scores)
