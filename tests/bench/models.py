"""Trains every kind of model on real data, and kills a Rank of each Job once.

    tests/bench/models.sh [MODEL...] --data DIR [--sets a,b] [--precisions fp32,bf16] [--ranks 1,2] [--budget S]

For each data set of DIR (adult, wine, temperatures, pollution; a missing one is a 'skipped' line), model (mlp, lstm,
transformer), precision and number of Ranks per fold it runs one Job with folds, a budget and 2 slots on a daemon of its
own. As soon as a fold that trains has a checkpoint, one of its Ranks is killed (SIGKILL). It prints a JSON line per Job: how
it ended, its scores beside the floor's, the step that the killed fold went on from, and the time left. The last line sums up.
"""
import argparse
import glob
import json
import os
import shutil
import sys

from tests.e2e.harness import ENDED, House, eventually, moment

MODELS = {
    "mlp": {"mlp": {"hidden": [128, 128]}},
    "lstm": {"lstm": {"hidden": 32, "layers": 1}},
    "transformer": {"transformer": {"width": 32, "heads": 4, "layers": 2, "feedforward": 64}},
}


def split(folder, house, name, test_rows):
    """The last rows of a file are its test rows."""
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
    house.write("train.csv", "".join(lines[:-test_rows]))
    house.write("test.csv", lines[0] + "".join(lines[-test_rows:]))


def adult(folder, house):
    for part in ("train", "test"):
        shutil.copy(os.path.join(folder, f"adult_{part}.csv"), os.path.join(house.data, f"{part}.csv"))
    return {"type": "classification", "metric": "accuracy"}, {"target": "income", "folds": 3}


def wine(folder, house):
    split(folder, house, "winequality_white.csv", 900)
    return {"type": "regression", "metric": "rmse"}, {"target": "quality", "folds": 5}


def temperatures(folder, house):
    split(folder, house, "daily_min_temperatures.csv", 365)
    return {"type": "forecasting", "metric": "rmse"}, {"target": "Temp", "time": "Date", "window": 14, "folds": 3}


def pollution(folder, house):
    split(folder, house, "pollution.csv", 4000)
    return {"type": "forecasting", "metric": "rmse"}, {"target": "pm2.5", "time": "No", "window": 24, "folds": 3}


SETS = {"adult": (adult, "adult_train.csv"), "wine": (wine, "winequality_white.csv"),
        "temperatures": (temperatures, "daily_min_temperatures.csv"), "pollution": (pollution, "pollution.csv")}


def trains_rows(pid):
    """A Rank that trains has its table mapped; a spare has none."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            return ".table" in f.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_one(house, job):
    """Kills a Rank of a fold that has a checkpoint; the Attempt it was of, or None where the Job was over before."""
    def victim():
        now = house.job(job)
        if now["state"] in ENDED:
            return True
        for fold in now["folds"]:
            files = os.path.join(house.results(job), "attempts", str(fold["attempt"]), "checkpoint-*.json")
            if fold["state"] == "RUNNING" and glob.glob(files):
                ranks = [p for p in house.processes("trainrank") if trains_rows(p)]
                if ranks:
                    house.kill(ranks[0])
                    return True
        return None
    eventually("a fold to strike", victim, 600)


def resumed_at(house, job):
    """The first step of a fold's later Attempt that followed a killed one; None: no fold was killed."""
    died = {a["task"]: a["id"] for a in job["attempts"] if a["end_reason"] == "RANK_DIED"}
    later = [a for a in job["attempts"] if a["task"] in died and a["id"] > died[a["task"]]]
    points = house.json("metrics", job["id"])["points"]
    steps = [p["step"] for p in points if later and p.get("attempt") == later[0]["id"]]
    return min(steps) if steps else None


def run(options, name, model, precision, ranks):
    """One Job; its record."""
    prepare, _ = SETS[name]
    with House(slots=2) as house:
        task, data = prepare(options.data, house)
        house.start()
        job = house.submit({
            "api": "v1", "name": f"{name}-{model}", "cache": "off", "task": task,
            "data": {"train": "train.csv", "test": "test.csv", "seed": 7, **data}, "model": MODELS[model],
            "train": {"epochs": options.epochs, "precision": precision, "checkpoint_every": "300ms"},
            "resources": {"slots": ranks}, "budget": {"time": f"{options.budget}s"}})
        kill_one(house, job["id"])
        job = house.wait(job["id"], options.budget + 30)
        killed = sum(a["end_reason"] == "RANK_DIED" for a in job["attempts"])
        scores = job["scores"]
        return {
            "data": name, "model": model, "precision": precision, "ranks": ranks, "budget_s": options.budget,
            "state": job["state"], "quality": job["quality"], "folds": job["predictions"]["folds"],
            "metric": scores["metric"], "oof": scores.get("oof"), "floor": scores.get("floor"),
            "test": scores.get("test"), "killed": killed, "resumed_at_step": resumed_at(house, job),
            "before_deadline_s": round(moment(job["deadline"]) - moment(job["finished_at"]), 2),
            "decisions": [d["rule"] for d in job["decisions"]],
            "verified": house.standing(job["id"]) is not None,
        }


def main():
    words = {"type": lambda text: text.split(",")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--data", default=".")
    parser.add_argument("--sets", default=list(SETS), **words)
    parser.add_argument("--precisions", default=["fp32", "bf16"], **words)
    parser.add_argument("--ranks", default=[1, 2], type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    for given, known in ((options.models, MODELS), (options.sets, SETS)):
        for name in given:
            if name not in known:
                parser.error(f"unknown {name} (known: {', '.join(known)})")
    records = []
    for name in options.sets:
        if not os.path.exists(os.path.join(options.data, SETS[name][1])):
            print(json.dumps({"data": name, "skipped": f"no {SETS[name][1]} in {options.data}"}), flush=True)
            continue
        for model in options.models or MODELS:
            for precision in options.precisions:
                for ranks in options.ranks:
                    records.append(run(options, name, model, precision, ranks))
                    print(json.dumps(records[-1]), flush=True)
    good = [r for r in records if r["state"] == "SUCCEEDED" and r["before_deadline_s"] >= 0 and r["verified"]]
    print(json.dumps({"jobs": len(records), "on_time": len(good), "killed": sum(r["killed"] > 0 for r in records),
                      "resumed": sum((r["resumed_at_step"] or 0) > 1 for r in records),
                      "full": sum(r["quality"] == "FULL" for r in records),
                      "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    return 0 if len(good) == len(records) else 1


if __name__ == "__main__":
    sys.exit(main())
