"""Losses of counts and of quantiles, end to end: answers, a killed Rank, later rows, and what is refused."""
import math
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, poisson, rows_of

MODELS = {"mlp": {"hidden": [32, 32]}, "lightgbm": {"learning_rate": 0.05}, "xgboost": {"learning_rate": 0.05}}


def counts(rows, seed, first_id=0, negative=None, note=""):
    """Visits of a day: many are 0, and their variance grows with their mean. note: the same in each row."""
    chance = random.Random(seed)
    wide = "," + note if note else ""
    text = f"id,warm,place,visits{',note' if note else ''}\n"
    for i in range(rows):
        warm, place = chance.gauss(0, 1), chance.choice("abc")
        mean = math.exp(0.9 * warm + {"a": -1.5, "b": 0, "c": 1}[place])
        visits = poisson(chance, mean)
        text += f"{first_id + i},{warm:.4f},{place},{-3 if i == negative else visits}{wide}\n"
    return text


def spec_of(house, model, loss, rows=600, **changes):
    house.write("train.csv", counts(rows, 1))
    house.write("test.csv", counts(200, 2, first_id=rows))
    spec = {"name": "visits", "cache": "off", "task": {"type": "regression"},
            "data": {"train": "train.csv", "test": "test.csv", "target": "visits", "id": "id", "folds": 3},
            "model": {model: MODELS[model]}, "train": {"loss": loss}, "budget": {"time": "60s"}}
    if model == "mlp":
        spec["train"] = {"epochs": 15, "batch": 32, "learning_rate": 0.01, "loss": loss}
    return {**spec, **changes}


def values_of(path):
    return [float(row[1]) for row in rows_of(path)[1:]]


for MODEL in MODELS:
    @case(f"Counts: {MODEL} answers from 0 on, and its models predict a later file to the same bytes", limit_s=120)
    def _(model=MODEL):
        with House(slots=2) as house:
            house.start()
            job = house.submit(spec_of(house, model, {"kind": "poisson"}), "--wait")
            assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
            assert job["predictions"]["folds"] == [0, 1, 2], job["predictions"]
            answers = values_of(job["predictions"]["path"])
            truth = [float(row[3]) for row in rows_of(os.path.join(house.data, "test.csv"))[1:]]
            assert min(answers) >= 0, min(answers)
            mean = sum(truth) / len(truth)
            errors = sum((a - y) ** 2 for a, y in zip(answers, truth))
            assert errors < 0.7 * sum((mean - y) ** 2 for y in truth), (errors, job["scores"])
            copy = os.path.join(house.root, "later.csv")
            later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"), "--out", copy)
            assert later["quality"] == "FULL", later
            assert rows_of(copy) == rows_of(job["predictions"]["path"])
            # Days as none was: far out, of a place that nobody knows, and with nothing known.
            rows = house.write("far.csv", "id,warm,place\n1,1000,z\n2,-1000,a\n3,,\n")
            far = os.path.join(house.root, "far-answers.csv")
            house.json("predict", job["id"], "--data", rows, "--out", far)
            assert all(0 <= v < math.inf for v in values_of(far)), values_of(far)


@case("Counts: a Rank that is killed goes on from its checkpoint", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        spec = spec_of(house, "mlp", {"kind": "poisson"}, rows=3000)
        spec["train"].update(epochs=4000, patience=0, checkpoint_epochs=2)
        job = house.submit(spec)
        house.until_saved(job["id"])
        house.kill_running("trainrank")
        house.until_again(job["id"], 60)
        job = house.finish(job["id"])
        assert job["state"] == "SUCCEEDED", job
        house.check_resumed(job)
        assert min(values_of(job["predictions"]["path"])) >= 0


for MODEL in MODELS:
    @case(f"A quantile: about its share of the truth lies below the answers ({MODEL})", limit_s=120)
    def _(model=MODEL):
        with House(slots=2) as house:
            house.start()
            job = house.submit(spec_of(house, model, {"kind": "quantile", "quantile": 0.8}, rows=1500), "--wait")
            assert job["state"] == "SUCCEEDED", job
            assert job["scores"]["metric"] == "pinball_q0.8", job["scores"]
            answers = values_of(job["predictions"]["path"])
            truth = [float(row[3]) for row in rows_of(os.path.join(house.data, "test.csv"))[1:]]
            below = sum(y <= a for a, y in zip(answers, truth)) / len(truth)
            assert 0.7 < below < 0.92, (below, job["scores"])
            pinball = sum(max(0.8 * (y - a), -0.2 * (y - a)) for a, y in zip(answers, truth)) / len(truth)
            assert abs(pinball - job["scores"]["test"]) < 1e-3 * pinball, (pinball, job["scores"])


@case("A spec that names only the loss of amounts tries all kinds of models that learn it", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        spec = spec_of(house, "mlp", {"kind": "tweedie", "tweedie_power": 1.2}, budget={"time": "25s"})
        del spec["model"], spec["task"], spec["train"]["epochs"]
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert any("task.type: regression, because train.loss.kind is tweedie" in w for w in job["warnings"]), job
        assert not [t for t in job["trials"] if t["kind"] == "kernel" or t["state"] == "FAILED"], job["trials"]
        assert min(values_of(job["predictions"]["path"])) >= 0


@case("What only looks like counts in the first MiB costs no quality where nobody asked for them", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        # A wide column makes few rows of it, so that all kinds have their turn.
        note = "x" * 400
        house.write("train.csv", counts(4_000, 1, negative=3_990, note=note))
        assert os.path.getsize(os.path.join(house.data, "train.csv")) > 1.2 * 2**20
        house.write("test.csv", counts(200, 2, first_id=4_000, note=note))
        job = house.submit({"name": "visits", "cache": "off", "task": {"metric": "rmse"}, "budget": {"time": "15s"},
                            "data": {"train": "train.csv", "test": "test.csv", "target": "visits", "id": "id"}}, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        told = [fold["message"] for fold in job["folds"] if fold["state"] == "FAILED"]
        assert told and all("-3 is negative" in message for message in told), job["folds"]


@case("A negative count is refused with its row and its value", limit_s=60)
def _():
    with House(slots=1) as house:
        house.start()
        spec = spec_of(house, "lightgbm", {"kind": "poisson"})
        house.write("train.csv", counts(600, 1, negative=41))
        job = house.submit(spec, "--wait", code=1)
        assert "train.csv: row 42, target 'visits': -3 is negative" in str(job), job
        wrong = house.cli("submit", "-f", house.write_spec(spec_of(house, "mlp", {"kind": "quantile", "quantile": 1})))
        assert wrong.returncode != 0 and "train.loss.quantile" in wrong.stderr + wrong.stdout, wrong


main()
