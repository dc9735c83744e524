"""Columns of many texts give numbers, lengths and words, end to end: better answers, later files, single rows, and without."""
import math
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

MODELS = {"mlp": {"hidden": [32, 32]}, "lightgbm": {"learning_rate": 0.1}, "xgboost": {"learning_rate": 0.1}, "kernel": {}}


def cars(rows, seed, first_id=0):
    """The price is that of the engine's size, times a factor of the trade in the name, which is another in each row."""
    chance = random.Random(seed)
    text = "id,name,engine,seats,price\n"
    for i in range(rows):
        trade, cc = chance.choice(("Taxi", "Estate", "Sport", "Van")), chance.randrange(800, 3000)
        kind = "".join(chance.choice("abcdefgh") for _ in range(9))
        price = cc / 100 * {"Taxi": 0.5, "Estate": 1, "Sport": 2, "Van": 1.2}[trade] + chance.gauss(0, 1)
        text += f"{first_id + i},\"{kind}, {trade} de luxe\",{cc} CC,{chance.choice((2, 4, 5))},{price:.3f}\n"
    return text


def spec_of(house, model, data=None):
    house.write("train.csv", cars(1200, 1))
    house.write("test.csv", cars(400, 2, first_id=1200))
    spec = {"name": "cars", "cache": "off", "task": {"type": "regression", "metric": "rmse"},
            "data": {"train": "train.csv", "test": "test.csv", "target": "price", "id": "id", "folds": 3, **(data or {})},
            "model": {model: MODELS[model]}, "budget": {"time": "60s"}}
    if model == "mlp":
        spec["train"] = {"epochs": 25, "batch": 32, "learning_rate": 0.01}
    return spec


def error_of(house, job):
    answers = [float(row[1]) for row in rows_of(job["predictions"]["path"])[1:]]
    truth = [float(row[4]) for row in rows_of(os.path.join(house.data, "test.csv"))[1:]]
    return math.sqrt(sum((a - y) ** 2 for a, y in zip(answers, truth)) / len(truth))


for MODEL in MODELS:
    @case(f"Cars: {MODEL} learns from names and amounts; a later file and single rows get the same answers", limit_s=180)
    def _(model=MODEL):
        with House(slots=2) as house:
            house.start()
            without = house.submit(spec_of(house, model, {"text_features": False}), "--wait")
            job = house.submit(spec_of(house, model), "--wait")
            assert without["state"] == "SUCCEEDED", without
            assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
            # The noise alone is 1.
            assert error_of(house, job) < 3 < 6 < error_of(house, without), (error_of(house, job), error_of(house, without))
            copy = os.path.join(house.root, "later.csv")
            house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"), "--out", copy)
            told = rows_of(job["predictions"]["path"])
            assert rows_of(copy) == told
            few = house.cli("predict", job["id"], "--rows", house.write("few.csv", cars(5, 2, first_id=1200)))
            for line, row in zip(few.stdout.strip().split("\n")[1:], told[1:6]):
                assert abs(float(line) - float(row[1])) < 1e-3, (few.stdout, told[:6])


@case("Cars: what is made of texts is told, and so is what is left out", limit_s=90)
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(spec_of(house, "lightgbm"), "--wait")
        warnings = " / ".join(job["warnings"])
        assert "column 'engine' holds texts: its numbers, lengths and frequent words are features, too" in warnings, warnings
        assert "column 'name' holds texts" in warnings and "data.text is for long ones" in warnings, warnings
        columns = {column["column"] for column in house.job(job["id"])["report"]["importance"]}
        assert {"engine.number", "name.word.sport"} <= columns and "name" not in columns, columns
        without = house.submit(spec_of(house, "lightgbm", {"text_features": False}), "--wait")
        warnings = " / ".join(without["warnings"])
        assert "column 'name' ignored: nearly every row has a value of its own" in warnings, warnings


@case("Cars: texts of a later file that are missing, strange or long are answered", limit_s=90)
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(spec_of(house, "lightgbm"), "--wait")
        long = "x" * 100_000
        odd = house.write("odd.csv", f"id,name,engine,seats\n1,,,4\n2,Sport,none,2\n3,{long},1e9e9 CC,5\n4,\xe9\xe8 Sport,\"1,500 CC\",2\n")
        out = os.path.join(house.root, "odd-answers.csv")
        later = house.json("predict", job["id"], "--data", odd, "--out", out)
        assert later["quality"] == "FULL", later
        answers = [float(row[1]) for row in rows_of(out)[1:]]
        assert len(answers) == 4 and all(math.isfinite(a) for a in answers), answers
        assert 25 < answers[3] < 35, answers


main()
