"""Estimators of scikit-learn that train by Jobs of traind.

A fitted estimator holds the id of its Job and the address of the server, not the models: these stay with traind, and
each predict() is a Job that predicts. It can be pickled; the server must be there when it predicts again.
"""
from __future__ import annotations

from typing import Any, Dict, Optional

try:
    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError("TraindClassifier and TraindRegressor need scikit-learn 1.6 or newer: "
                      "pip install scikit-learn") from error

from .spec import budget_of
from .tables import is_frame

_TARGET = "target"


def _is_typed_frame(X: Any) -> bool:
    """Whether it is a frame with other columns than numbers: these keep their types."""
    return is_frame(X) and not all(getattr(kind, "kind", "O") in "biuf" for kind in X.dtypes)


def _checked_rows(estimator: Any, X: Any) -> Any:
    """The rows to predict, as scikit-learn checks them. Missing values are allowed, infinite ones are not."""
    if _is_typed_frame(X):
        return validate_data(estimator, X, reset=False, skip_check_array=True)
    return validate_data(estimator, X, reset=False, dtype="numeric", ensure_all_finite="allow-nan")


def _checked_training_rows(estimator: Any, X: Any, y: Any, numeric: bool) -> Any:
    """The rows and targets to train on, as scikit-learn checks them."""
    if _is_typed_frame(X):
        validate_data(estimator, X, y, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return X, y
    return validate_data(estimator, X, y, dtype="numeric", ensure_all_finite="allow-nan", ensure_min_samples=2,
                         y_numeric=numeric)


def _columns(X: Any) -> Dict[str, Any]:
    """The features under names of their own, so that a column may be called `target`."""
    if is_frame(X):
        return {f"x_{name}": X.iloc[:, i].tolist() for i, name in enumerate(X.columns)}
    return {f"x{i}": X[:, i].tolist() for i in range(X.shape[1])}


class _TraindEstimator(BaseEstimator):
    _task = ""

    def __init__(self, budget: Any = "60s", metric: Optional[str] = None, model: Any = None, folds: int = 5, seed: int = 0,
                 spec: Optional[Dict[str, Any]] = None, url: Optional[str] = None, data_folder: Optional[str] = None,
                 predict_budget: Any = None):
        self.budget = budget
        self.metric = metric
        self.model = model
        self.folds = folds
        self.seed = seed
        self.spec = spec
        self.url = url
        self.data_folder = data_folder
        self.predict_budget = predict_budget

    def _client(self, url: Optional[str]) -> Any:
        from . import connect
        return connect(url, self.data_folder)

    def _train(self, X: Any, y: Any) -> None:
        spec: Dict[str, Any] = dict(self.spec or {})
        spec["name"] = spec.get("name", type(self).__name__.lower())
        spec["budget"] = budget_of(self.budget)
        task = {"type": self._task, "metric": self.metric}
        spec["task"] = {**{k: v for k, v in task.items() if v}, **(spec.get("task") or {})}
        if self.model is not None:
            spec["model"] = self.model
        columns = _columns(X)
        columns[_TARGET] = y.tolist()
        # A fold needs a row at least.
        folds = max(2, min(self.folds, len(y)))
        spec["data"] = {"folds": folds, "seed": self.seed, **(spec.get("data") or {}), "train": columns,
                        "target": _TARGET}
        client = self._client(self.url)
        job = client.submit(spec).wait(progress=False)
        self.job_id_ = job.id
        self.url_ = client.url
        self.quality_ = job.quality
        self.oof_score_ = job.scores.get("oof")

    def job(self) -> Any:
        """The Job that has trained it."""
        check_is_fitted(self)
        return self._client(self.url_).job(self.job_id_)

    def _answer(self, X: Any) -> Dict[str, Any]:
        check_is_fitted(self)
        X = _checked_rows(self, X)
        answer = self.job().predict(_columns(X), self.predict_budget)
        return {name: np.asarray(answer[name]) for name in answer}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # How many epochs fit into the budget is measured, so two fits may differ.
        tags.non_deterministic = True
        return tags


class TraindClassifier(ClassifierMixin, _TraindEstimator):
    """Trains a classification within `budget`: oof_score_ is the score on held-out rows, quality_ FULL, DEGRADED or FLOOR.

    model, metric, folds and seed are fields of the spec; `spec` has any others, such as {"train": {"epochs": 20}}.
    url, data_folder: as in traind.connect(). predict_budget: the time of each predict(), without limit by default.
    """
    _task = "classification"

    def fit(self, X: Any, y: Any) -> "TraindClassifier":
        X, y = _checked_training_rows(self, X, y, numeric=False)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        self._train(X, np.asarray([f"c{code}" for code in codes]))
        return self

    def predict_proba(self, X: Any) -> Any:
        """[rows, classes], in the order of classes_."""
        answer = self._answer(X)
        rows = len(next(iter(answer.values())))
        return np.column_stack([answer.get(f"p_c{i}", np.zeros(rows)) for i in range(len(self.classes_))])

    def predict(self, X: Any) -> Any:
        codes = [int(str(text)[1:]) for text in self._answer(X)[_TARGET]]
        return self.classes_[codes]


class TraindRegressor(RegressorMixin, _TraindEstimator):
    """Trains a regression within `budget`; the arguments are those of TraindClassifier."""
    _task = "regression"

    def fit(self, X: Any, y: Any) -> "TraindRegressor":
        X, y = _checked_training_rows(self, X, y, numeric=True)
        self._train(X, np.asarray(y, dtype=float))
        return self

    def predict(self, X: Any) -> Any:
        return self._answer(X)[_TARGET].astype(float)
