"""Targets that are learnt transformed, end to end: better answers, a killed Rank, later rows, and what is refused."""
import math
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

MODELS = {"mlp": {"hidden": [32, 32]}, "lightgbm": {"learning_rate": 0.05}, "xgboost": {"learning_rate": 0.05},
          "kernel": {}}


def prices(rows, seed, first_id=0, bad=None):
    """Prices whose noise is a factor: most are near 10, some in the thousands."""
    chance = random.Random(seed)
    text = "id,size,age,place,price\n"
    for i in range(rows):
        size, age, place = chance.gauss(0, 1), chance.gauss(0, 1), chance.choice("abc")
        level = 2.5 + size - 0.5 * age * size + {"a": -1, "b": 0, "c": 1}[place]
        price = math.exp(level + 0.5 * chance.gauss(0, 1))
        text += f"{first_id + i},{size:.4f},{age:.4f},{place},{-0.5 if i == bad else round(price, 4)}\n"
    return text


def spec_of(house, model, transform, metric="mae", rows=900, **changes):
    house.write("train.csv", prices(rows, 1))
    house.write("test.csv", prices(600, 2, first_id=rows))
    spec = {"name": "prices", "cache": "off", "task": {"type": "regression", "metric": metric},
            "data": {"train": "train.csv", "test": "test.csv", "target": "price", "id": "id", "folds": 3},
            "model": {model: MODELS[model]}, "train": {"target_transform": transform}, "budget": {"time": "60s"}}
    if model == "mlp":
        spec["train"].update(epochs=25, batch=32, learning_rate=0.01)
    return {**spec, **changes}


def values_of(path):
    return [float(row[1]) for row in rows_of(path)[1:]]


def truth_of(house):
    return [float(row[4]) for row in rows_of(os.path.join(house.data, "test.csv"))[1:]]


def mae(answers, truth):
    return sum(abs(a - y) for a, y in zip(answers, truth)) / len(truth)


def rmse(answers, truth):
    return math.sqrt(sum((a - y) ** 2 for a, y in zip(answers, truth)) / len(truth))


for MODEL in MODELS:
    @case(f"Prices: {MODEL} gains by the logarithm, scores are in their unit, and a later file gets the same bytes", limit_s=180)
    def _(model=MODEL):
        with House(slots=2) as house:
            house.start()
            errors = {}
            for transform in ("none", "log", "yeo_johnson"):
                job = house.submit(spec_of(house, model, transform), "--wait")
                assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
                answers, truth = values_of(job["predictions"]["path"]), truth_of(house)
                errors[transform] = mae(answers, truth)
                assert abs(job["scores"]["test"] - errors[transform]) < 1e-3 * errors[transform], job["scores"]
                assert 0.5 < job["scores"]["oof"] / errors[transform] < 2, job["scores"]
            # A kernel of so few rows learns little of the factors.
            assert errors["log"] < (1 if model == "kernel" else 0.93) * errors["none"], errors
            assert model == "kernel" or errors["yeo_johnson"] < errors["none"], errors
            copy = os.path.join(house.root, "later.csv")
            later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"), "--out", copy)
            assert later["quality"] == "FULL", later
            assert rows_of(copy) == rows_of(job["predictions"]["path"])


for MODEL in MODELS:
    @case(f"Prices: for RMSE {MODEL} answers with means, also for later rows, and near the prices that it knows", limit_s=180)
    def _(model=MODEL):
        with House(slots=2) as house:
            house.start()
            medians = house.submit(spec_of(house, model, "log"), "--wait")
            job = house.submit(spec_of(house, model, "log", metric="rmse"), "--wait")
            assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
            answers, truth = values_of(job["predictions"]["path"]), truth_of(house)
            assert abs(job["scores"]["test"] - rmse(answers, truth)) < 1e-3 * rmse(answers, truth), job["scores"]
            # The mean of e^(0.5 x) is e^0.125, of which overfitting takes nothing.
            factor = sum(answers) / sum(values_of(medians["predictions"]["path"]))
            assert 1.03 < factor < 1.4, factor
            copy = os.path.join(house.root, "later.csv")
            house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"), "--out", copy)
            assert rows_of(copy) == rows_of(job["predictions"]["path"])
            rows = house.write("far.csv", "id,size,age,place\n1,1e6,0,z\n2,-1e6,1e6,a\n3,,,\n")
            far = os.path.join(house.root, "far-answers.csv")
            house.json("predict", job["id"], "--data", rows, "--out", far)
            most = max(float(row[4]) for row in rows_of(os.path.join(house.data, "train.csv"))[1:])
            assert all(0 < v <= 2 * most for v in values_of(far)), (values_of(far), most)


@case("Prices: a Rank that is killed goes on from its checkpoint", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        spec = spec_of(house, "mlp", "log", metric="rmse", rows=3000)
        spec["train"].update(epochs=4000, patience=0, checkpoint_epochs=2)
        job = house.submit(spec)
        house.until_saved(job["id"])
        house.kill_running("trainrank")
        house.until_again(job["id"], 60)
        job = house.finish(job["id"])
        assert job["state"] == "SUCCEEDED", job
        house.check_resumed(job)
        copy = os.path.join(house.root, "later.csv")
        house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"), "--out", copy)
        answers = values_of(job["predictions"]["path"])
        assert [round(v, 3) for v in values_of(copy)] == [round(v, 3) for v in answers]
        assert min(answers) > 0


@case("Prices: single rows have the answers of the file, and quantiles are in their unit", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        spec = spec_of(house, "lightgbm", "log", metric="rmse", predictions={"quantiles": [0.1, 0.9]})
        job = house.submit(spec, "--wait")
        assert job["state"] == "SUCCEEDED", job
        rows = rows_of(job["predictions"]["path"])
        assert rows[0] == ["id", "price", "price_q0.1", "price_q0.9"], rows[0]
        truth = truth_of(house)
        inside = sum(float(r[2]) <= y <= float(r[3]) for r, y in zip(rows[1:], truth)) / len(truth)
        assert 0.7 < inside < 0.93, inside
        few = house.cli("predict", job["id"], "--rows", house.write("few.csv", prices(5, 2, first_id=900)))
        at_once = [line.split(",") for line in few.stdout.strip().split("\n")]
        assert at_once[0] == rows[0][1:], at_once[0]
        for told, same in zip(rows[1:6], at_once[1:]):
            for one, other in zip(told[1:], same):
                assert abs(float(one) - float(other)) <= 1e-4 * float(one), (told, same)


def automatic(house, rows, bad=None):
    """A Job that names nothing but its data and its metric."""
    house.write("train.csv", prices(rows, 1, bad=bad))
    house.write("test.csv", prices(600, 2, first_id=rows))
    return house.submit({"name": "prices", "cache": "off", "task": {"metric": "mae"}, "budget": {"time": "15s"},
                         "data": {"train": "train.csv", "test": "test.csv", "target": "price", "id": "id"}}, "--wait")


@case("Prices: a spec that names only the metric tries the logarithm, too, and gains by it", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        job = automatic(house, 2000)
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        first, again = house.json("get", job["id"])["trials"][:2]
        assert (first["name"], again["name"]) == ("lightgbm", "lightgbm-again"), (first, again)
        assert again["scored_folds"] >= 4 and again["score"] < 0.95 * first["score"], (first, again)
        assert job["scores"]["oof"] < 0.95 * first["score"], (job["scores"], first)


@case("Prices: one without a logarithm beyond the first MiB costs no quality where nobody asked for it", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        job = automatic(house, 60_000, bad=59_990)
        assert os.path.getsize(os.path.join(house.data, "train.csv")) > 1.2 * 2**20
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        told = [fold["message"] for fold in job["folds"] if fold["state"] == "FAILED"]
        assert told and all("-0.5 has no logarithm" in message for message in told), job["folds"]


@case("Prices: what is not above 0 has no logarithm, and classes have none either", limit_s=60)
def _():
    with House(slots=1) as house:
        house.start()
        spec = spec_of(house, "lightgbm", "log")
        house.write("train.csv", prices(900, 1, bad=41))
        job = house.submit(spec, "--wait", code=1)
        assert "train.csv: row 42, target 'price': -0.5 has no logarithm" in str(job), job
        spec = spec_of(house, "lightgbm", "yeo_johnson")
        house.write("train.csv", prices(900, 1, bad=41))
        assert house.submit(spec, "--wait")["state"] == "SUCCEEDED"
        for changes in ({"task": {"type": "classification"}}, {"train": {"target_transform": "log", "loss": {"kind": "poisson"}}}):
            wrong = house.cli("submit", "-f", house.write_spec({**spec_of(house, "mlp", "log"), **changes}))
            assert wrong.returncode != 0 and "train.target_transform" in wrong.stderr + wrong.stdout, wrong


main()
