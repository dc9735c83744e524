"""Trains LightGBM on one fold of the handwritten digits, and predicts the held-out and the test rows.

    python3 train_lightgbm.py --data ../digits --fold 0 [--folds 5]      # needs lightgbm and pandas

It writes oof_K.csv and sub_K.csv for fold K.
"""
import argparse
import os

import lightgbm
import pandas
from traind_run import run

ROUNDS = 200


def table(ids, probabilities):
    names = [f"p_{digit}" for digit in range(10)]
    return pandas.DataFrame(probabilities, columns=names).assign(id=ids.to_numpy())[["id", *names]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--fold", type=int, required=True)
    parser.add_argument("--folds", type=int, default=5)
    arguments = parser.parse_args()
    train, test = (pandas.read_csv(os.path.join(arguments.data, name)) for name in ("train.csv", "test.csv"))
    columns = [name for name in train.columns if name.startswith("p")]
    held_out = train.index % arguments.folds == arguments.fold
    data = lightgbm.Dataset(train.loc[~held_out, columns], train.loc[~held_out, "digit"])
    valid = data.create_valid(train.loc[held_out, columns], train.loc[held_out, "digit"])
    path = run.resume()
    if path:
        print(f"goes on after round {run.resumed}", flush=True)
    settings = {"objective": "multiclass", "num_class": 10, "num_leaves": 15, "num_threads": 1, "seed": run.seed, "verbosity": -1}
    model = lightgbm.train(settings, data, ROUNDS - run.resumed, valid_sets=[valid], valid_names=["valid"], init_model=path,
                           callbacks=[run.lightgbm_callback(), lightgbm.early_stopping(20, verbose=False)])
    table(train.loc[held_out, "id"], model.predict(train.loc[held_out, columns])).to_csv(f"oof_{arguments.fold}.csv", index=False)
    answers = model.predict(test[columns])
    table(test["id"], answers).to_csv(f"sub_{arguments.fold}.csv", index=False)
    print(f"fold {arguments.fold}: {model.num_trees() // 10} rounds, accuracy {(answers.argmax(1) == test['digit']).mean():.3f}")


if __name__ == "__main__":
    main()
