"""AutoGluon under a time limit, as its manual has it: fit within the limit, then predict.

    python autogluon_peer.py TRAIN.csv TEST.csv TARGET PROBLEM METRIC LIMIT_S OUT.csv [PRESET]

Writes OUT.csv (one column, the header is the target), then prints one JSON line: seconds of each part.
"""
import json
import os
import sys
import tempfile
import time

BEGIN = time.time()


def main():
    train, test, target, problem, metric, limit, out = sys.argv[1:8]
    preset = sys.argv[8] if len(sys.argv) > 8 else "medium_quality"
    import pandas
    from autogluon.tabular import TabularPredictor
    imported = time.time()
    learn, ask = (pandas.read_csv(f, skipinitialspace=True) for f in (train, test))
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor(label=target, problem_type=problem, eval_metric=metric, path=folder, verbosity=0)
        predictor.fit(learn, time_limit=float(limit), presets=preset, num_cpus=os.cpu_count(), num_gpus=0)
        fitted = time.time()
        answers = predictor.predict(ask.drop(columns=[target], errors="ignore"))
        answers.to_csv(out + ".part", index=False)
        os.replace(out + ".part", out)
        print(json.dumps({"import_s": round(imported - BEGIN, 2), "fit_s": round(fitted - imported, 2),
                          "predict_s": round(time.time() - fitted, 2), "models": predictor.model_names()}))


if __name__ == "__main__":
    main()
