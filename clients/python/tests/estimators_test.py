"""The estimators of scikit-learn against the real daemon; clients/python/tests/run.sh runs it."""
import os
import pickle
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import traind
from tests.cases import case, main
from traind import TraindClassifier, TraindRegressor

# Small trees end long before the budget, so the answers do not depend on it.
CLASSIFIER = TraindClassifier(budget="30s", folds=2, model={"lightgbm": {"num_iterations": 30, "min_data_in_leaf": 1}})
REGRESSOR = TraindRegressor(budget="30s", folds=2, model={"lightgbm": {"num_iterations": 60, "min_data_in_leaf": 1}})


def check(estimator):
    failed = [f"{r['check_name']}: {r['exception']!r:.300}" for r in check_estimator(estimator, on_fail=None, on_skip=None)
              if r["status"] == "failed"]
    assert not failed, "\n".join(failed)


@case("TraindClassifier passes check_estimator", limit_s=400)
def _():
    check(CLASSIFIER)


@case("TraindRegressor passes check_estimator", limit_s=400)
def _():
    check(REGRESSOR)


@case("Iris is learnt; probabilities are those of the classes; a pickled estimator answers the same")
def _():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.asarray(["setosa", "versicolor", "virginica"])[y]
    model = clone(CLASSIFIER).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.9 and model.oof_score_ > 0.85
    assert model.quality_ in ("FULL", "FLOOR")  # on so few rows the linear floor may be better
    shares = model.predict_proba(X[1::2])
    assert shares.shape == (75, 3) and np.allclose(shares.sum(axis=1), 1, atol=1e-4)
    assert list(model.classes_[shares.argmax(axis=1)]) == list(model.predict(X[1::2]))
    again = pickle.loads(pickle.dumps(model))
    assert list(again.predict(X[1::2])) == list(model.predict(X[1::2]))


@case("A frame with texts, categories and dates is trained on as it is")
def _():
    chance = np.random.default_rng(3)
    frame = pd.DataFrame({"colour": pd.Categorical(chance.choice(["red", "green"], 200)), "target": chance.normal(size=200),
                          "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(chance.integers(0, 300, 200), "D"),
                          "text": chance.choice(["a,b", "c", None], 200)})
    y = np.where(frame.colour == "red", 10.0, -10.0) + frame.target
    model = clone(REGRESSOR).fit(frame[:150], y[:150])
    assert model.score(frame[150:], y[150:]) > 0.8
    assert list(model.feature_names_in_) == list(frame.columns)


@case("It works in a pipeline and in a grid search")
def _():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(CLASSIFIER)), {"traindclassifier__seed": [0, 1]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.85


with traind.start():
    main()
