"""Forecasts, splits and several targets, through trainctl, on the standalone daemon."""
import json
import math
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of


def series(rows, begin=0, seed=3, target=True, scale=1.0, ahead=1):
    """CSV lines of days with a season of seven and a number that tells of the day that many days later."""
    chance = random.Random(seed)
    lines = []
    told = [0.0] * ahead
    for i in range(begin + rows):
        news = chance.gauss(0, 1)
        # Nothing linear tells what the news of that day before do.
        value = 10 * math.sin(i * 2 * math.pi / 7) + 5 * abs(told[i]) + 0.1 * chance.gauss(0, 1)
        told.append(news)
        day = f"20{10 + i // 336:02d}-{1 + i % 336 // 28:02d}-{1 + i % 28:02d}"
        if i >= begin:
            lines.append(f"{day},{news:.4f}" + (f",{scale * value:.4f}" if target else ""))
    return lines


def spec(**data):
    return {
        "api": "v1", "name": "days", "task": {"type": "forecasting", "metric": "mae"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "value", "time": "day",
                 "window": 7, "horizon": 1, "folds": 3, "seed": 1, **data},
        "model": {"mlp": {"hidden": [64], "dropout": 0}},
        "train": {"epochs": 40, "batch": 32, "patience": 0, "precision": "fp32", "learning_rate": 0.01},
        "budget": {"time": "60s"},
    }


def write(house, name, lines, header="day,news,value"):
    house.write(name, "\n".join([header, *lines]) + "\n")


def promoted(rows, begin=0, target=True):
    """Days on some of which a price is cut, which nothing before tells, and more is sold."""
    chance = random.Random(5)
    lines = []
    for i in range(begin + rows):
        price = chance.choice((1.0, 1.0, 0.6))
        sold = 100 + 200 * (1 - price) + chance.gauss(0, 3)
        day = f"20{10 + i // 336:02d}-{1 + i % 336 // 28:02d}-{1 + i % 28:02d}"
        if i >= begin:
            lines.append(f"{day},{price}" + (f",{sold:.2f}" if target else ""))
    return lines


@case("What is known ahead of a row counts, of its test rows and of later ones")
def _():
    with House(slots=2) as house:
        write(house, "train.csv", promoted(600), "day,price,value")
        write(house, "test.csv", promoted(14, begin=600), "day,price,value")
        house.start()
        errors = []
        for known in ({"known_ahead": ["price"]}, {}):
            job = house.submit({**spec(horizon=14, **known), "model": {"lightgbm": {}}, "train": {"epochs": 50}}, "--wait")
            assert job["state"] == "SUCCEEDED", job
            errors.append(job["scores"]["test"])
            if known:
                first = job
        assert errors[0] < 8 and errors[1] > 3 * errors[0], errors
        later = promoted(600) + [line + "," for line in promoted(14, begin=600, target=False)]
        write(house, "later.csv", later, "day,price,value")
        again = house.json("predict", first["id"], "--data", os.path.join(house.data, "later.csv"))
        told = [float(row[-1]) for row in rows_of(again["predictions"]["path"])[1:]]
        wanted = [float(row[-1]) for row in rows_of(first["predictions"]["path"])[1:]]
        assert len(told) == 14 and all(abs(a - b) < 0.01 * b for a, b in zip(told, wanted)), (told, wanted)


@case("A series is learnt from its windows, and its test target is seen by the score alone")
def _():
    with House(slots=2) as house:
        write(house, "train.csv", series(1500))
        write(house, "test.csv", series(30, begin=1500))
        house.start()
        job = house.submit(spec(), "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        house.check_folds_answer(job)
        assert job["scores"]["oof"] < 0.8 * job["scores"]["floor"], job["scores"]
        assert job["scores"]["test"] < job["scores"]["floor"], job["scores"]
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["row", "value"] and len(table) == 31, table
        # Forward: three folds follow a first block that validates nothing.
        with open(os.path.join(house.results(job["id"]), "samples.json"), encoding="utf-8") as f:
            assert json.load(f) == {"split": "forward", "window": 7, "horizon": 1}
        write(house, "test.csv", series(30, begin=1500, scale=1000.0))
        other = house.submit(spec(), "--wait")
        assert rows_of(other["predictions"]["path"]) == table
        assert other["scores"]["test"] > 100 * job["scores"]["test"], other["scores"]


@case("A rolling forecast predicts each test row from what was known `horizon` rows before it", limit_s=240)
def _():
    with House(slots=2) as house:
        write(house, "train.csv", series(700, ahead=3))
        house.start()
        lines = series(30, begin=700, ahead=3)
        for model in ({"mlp": {"hidden": [32], "dropout": 0}}, {"lightgbm": {}}):
            def answers(test, header="day,news,value", **data):
                write(house, "test.csv", test, header)
                job = house.submit({**spec(horizon=3, **data), "model": model,
                                    "train": {**spec()["train"], "epochs": 20} if "mlp" in model else {"epochs": 100}}, "--wait")
                assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
                return [row[1] for row in rows_of(job["predictions"]["path"])[1:]], job
            plain, _ = answers(lines, rolling=True)
            day, news, _ = lines[9].split(",")
            told, _ = answers([*lines[:9], f"{day},{news},500", *lines[10:]], rolling=True)
            # The first row that may know of row 9 is row 12.
            assert told[:12] == plain[:12] and told[12] != plain[12], (plain, told)
            unknown, job = answers([line.rsplit(",", 1)[0] for line in lines], "day,news", rolling=True)
            assert unknown[:3] == plain[:3] and unknown[3:] != plain[3:], (plain, unknown)
            assert any("the test file has no column 'value'" in w for w in job["warnings"]), job["warnings"]
        once, _ = answers(lines)
        assert once != plain, once


@case("Series that alternate in the file are told apart, and test rows keep the file's order")
def _():
    with House(slots=2) as house:
        near, far = series(300, seed=5), [f"{line}" for line in series(300, seed=6)]
        write(house, "train.csv", [f"{row},{name}" for pair in zip(near, far) for row, name in zip(pair, "ab")],
              "day,news,value,shop")
        late, more = series(10, begin=300, seed=5), series(10, begin=300, seed=6)
        test = [f"{row},b" for row in reversed(more)] + [f"{row},a" for row in late]
        write(house, "test.csv", test, "day,news,value,shop")
        house.start()
        job = house.submit(spec(series="shop"), "--wait", "--set", "train.epochs=20")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert any("put in the order of their times" in w for w in job["warnings"]), job["warnings"]
        table = rows_of(job["predictions"]["path"])[1:]
        truth = [float(row.split(",")[2]) for row in test]
        error = sum(abs(float(r[1]) - t) for r, t in zip(table, truth)) / len(truth)
        assert abs(error - job["scores"]["test"]) < 1e-3, (error, job["scores"])


@case("A forecast that names no model is answered by trees, networks and statistical models together")
def _():
    with House(slots=2) as house:
        write(house, "train.csv", series(600))
        write(house, "test.csv", series(12, begin=600))
        house.start()
        asked = spec(horizon=4)
        del asked["model"], asked["train"]
        job = house.submit({**asked, "budget": {"time": "25s"}}, "--wait")
        assert job["state"] == "SUCCEEDED", job
        kinds = {member["kind"] for member in job["predictions"]["members"]}
        assert "lightgbm" in kinds, job["predictions"]
        assert job["scores"]["oof"] < job["scores"]["floor"], job["scores"]
        assert len(rows_of(job["predictions"]["path"])) == 13


@case("What cannot be forecast is refused with its place")
def _():
    with House() as house:
        write(house, "train.csv", series(40))
        write(house, "test.csv", series(5, begin=40))
        house.start()
        no_time = spec()
        del no_time["data"]["time"]
        result = house.cli("submit", "-f", house.write_spec(no_time))
        assert result.returncode != 0 and "data.time" in result.stderr, result
        job = house.wait(house.submit(spec(window=100))["id"])
        assert job["state"] == "FAILED" and "data.window is 100" in job["end_message"], job
        write(house, "train.csv", series(40) + series(1, begin=39))
        job = house.wait(house.submit(spec())["id"])
        assert "row 41, column 'day': row 40 has the same time" in job["end_message"], job


@case("Several targets are predicted side by side, and no group is in two folds")
def _():
    with House(slots=2) as house:
        chance = random.Random(4)
        lines = []
        for i in range(300):
            x, z = chance.uniform(-1, 1), chance.uniform(-1, 1)
            # Neither is linear, so that the floor does not answer.
            lines.append(f"{x:.4f},{z:.4f},{x * z:.4f},{100 * (x * x - z * z):.4f},g{i % 12}")
        house.write("train.csv", "\n".join(["x,z,product,squares,who", *lines[:240]]) + "\n")
        house.write("test.csv", "\n".join(["x,z,product,squares,who", *lines[240:]]) + "\n")
        house.start()
        job = house.submit({
            "api": "v1", "name": "two", "task": {"type": "regression", "metric": "r2"},
            "data": {"train": "train.csv", "test": "test.csv", "target": ["product", "squares"],
                     "group": "who", "folds": 4},
            "model": {"mlp": {"hidden": [64], "dropout": 0}},
            "train": {"epochs": 40, "batch": 16, "patience": 0, "learning_rate": 0.01},
            "budget": {"time": "60s"}}, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        house.check_folds_answer(job)
        assert job["scores"]["oof"] > 0.8 and job["scores"]["test"] > 0.8, job["scores"]
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["row", "product", "squares"], table[0]
        assert max(abs(float(r[2])) for r in table[1:]) > 50, table[:4]


if __name__ == "__main__":
    main()
