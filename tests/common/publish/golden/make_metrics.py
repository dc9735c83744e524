#!/usr/bin/env python3
"""Makes metrics.json: scores as scikit-learn computes them (needs scikit-learn, numpy).

    python3 make_metrics.py > metrics.json

scikit-learn has no SMAPE: that one is its definition, in numpy. Of several targets the scores
are averaged as with multioutput="uniform_average".
"""
import json
import sys

import numpy as np
import sklearn
from sklearn import metrics as m


def classification(rng, n, classes, ties):
    logits = rng.normal(size=(n, classes)) * 2
    labels = np.array([rng.choice(classes) for _ in range(n)])
    logits[np.arange(n), labels] += 1
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    if ties:
        p = np.round(p * 4) / 4
    return p.astype(np.float32), labels


def classification_case(name, p, y):
    classes = p.shape[1]
    guess = p.argmax(axis=1)
    binary = classes == 2
    # log_loss expects rows that sum to 1; it scores the label's probability.
    eps = np.finfo(np.float32).eps
    sums = np.isclose(p.sum(axis=1), 1, atol=1e-5).all()
    scores = {
        "accuracy": m.accuracy_score(y, guess),
        "f1": m.f1_score(y, guess) if binary else m.f1_score(y, guess, average="macro"),
        "auc": m.roc_auc_score(y, p[:, 1]) if binary else m.roc_auc_score(
            y, p.astype(np.float64) / p.sum(axis=1, keepdims=True, dtype=np.float64),
            multi_class="ovr", average="macro"),
    }
    if sums:
        scores["logloss"] = m.log_loss(y, p, labels=list(range(classes)))
    return {"name": name, "classes": classes, "labels": y.tolist(),
            "probabilities": [float(x) for x in p.ravel()], "scores": scores}


def smape(t, p):
    size = np.abs(t) + np.abs(p)
    parts = np.divide(2 * np.abs(t - p), size, out=np.zeros_like(size), where=size > 0)  # 0 / 0: no error
    return 100 * parts.mean(axis=0).mean()


def regression_case(name, p, t):
    return {"name": name, "outputs": 1 if t.ndim == 1 else t.shape[1],
            "predicted": p.astype(np.float32).ravel().tolist(),
            "target": t.astype(np.float32).ravel().tolist(),
            "scores": {
                "rmse": m.root_mean_squared_error(t, p),
                "mae": m.mean_absolute_error(t, p),
                "r2": m.r2_score(t, p),
                "smape": smape(t, p),
            }}


def main():
    rng = np.random.default_rng(20261121)
    cases = []
    cases.append(classification_case("binary", *classification(rng, 97, 2, False)))
    cases.append(classification_case("five classes", *classification(rng, 150, 5, False)))
    p, y = classification(rng, 120, 2, True)
    p[:, 1] = 1 - p[:, 0]
    cases.append(classification_case("binary with ties, zeros and ones", p, y))
    p, y = classification(rng, 60, 4, False)
    y[y == 3] = 0
    p[:, 3] = 0
    p /= p.sum(axis=1, keepdims=True)
    p64 = p.astype(np.float64)
    guess = p.argmax(axis=1)
    cases.append({"name": "a class that no row has", "classes": 4, "labels": y.tolist(),
                  "probabilities": [float(x) for x in p.ravel()],
                  "scores": {"accuracy": m.accuracy_score(y, guess),
                             "f1": m.f1_score(y, guess, average="macro"),
                             "logloss": m.log_loss(y, p, labels=[0, 1, 2, 3]),
                             "auc": float(np.mean([m.roc_auc_score(y == c, p64[:, c])
                                                   for c in range(3)]))}})
    t = rng.normal(size=80).astype(np.float32) * 3 + 10
    p = (t + rng.normal(size=80)).astype(np.float32)
    cases.append(regression_case("near", p.astype(np.float64), t.astype(np.float64)))
    cases.append(regression_case("far", rng.normal(size=30).astype(np.float32).astype(np.float64),
                                 rng.normal(size=30).astype(np.float32).astype(np.float64)))
    cases.append(regression_case("constant target", np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])))
    cases.append(regression_case("constant target, hit", np.array([2.0, 2.0]), np.array([2.0, 2.0])))
    # Rows of quarters that sum to 1 give equal scores within classes and within rows.
    p = (rng.multinomial(4, [0.25] * 4, size=90) / 4).astype(np.float32)
    cases.append(classification_case("four classes with ties, zeros and ones", p, rng.integers(0, 4, size=90)))
    scale, shift = np.array([1.0, 50.0, 0.1]), np.array([0.0, -200.0, 3.0])
    t = (rng.normal(size=(70, 3)) * scale + shift).astype(np.float32).astype(np.float64)
    p = (t + rng.normal(size=(70, 3)) * scale).astype(np.float32).astype(np.float64)
    cases.append(regression_case("three targets", p, t))
    t[:, 1] = 7
    cases.append(regression_case("three targets, one constant", p, t))
    p[:5, 2] = t[:5, 2] = 0
    cases.append(regression_case("three targets, zeros met by zeros", p, t))
    json.dump({"scikit_learn": sklearn.__version__, "cases": cases}, sys.stdout, indent=None,
              separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
