"""Models of a forecast go on to later files, which hold the history of each series."""
import math
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

ROWS, HORIZON = 220, 3


def rows(name, begin, end, target=True):
    """CSV lines of a series of days: a season of seven, a trend, and a number beside."""
    chance = random.Random(name)
    lines = []
    for i in range(end):
        value = 10 + 0.05 * i + 3 * math.sin(i * 2 * math.pi / 7) + chance.gauss(0, 0.3)
        value *= 100 if name == "b" else 1
        x = chance.gauss(0, 1)
        if i >= begin:
            lines.append(f"{i},{name},{x:.4f}," + (f"{value:.4f}" if target else ""))
    return lines


def write(house, name, *parts):
    house.write(name, "\n".join(["t,s,x,value", *(line for part in parts for line in part)]) + "\n")
    return f"{house.data}/{name}"


def spec(**changes):
    return {
        "api": "v1", "name": "later", "task": {"type": "forecasting", "metric": "mae"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "value", "time": "t", "series": "s",
                 "window": 14, "horizon": HORIZON, "folds": 2, "seed": 1},
        "predictions": {"ensemble": "greedy"}, "budget": {"time": "30s"}, "cache": "off", **changes,
    }


def values(path):
    return [float(row[1]) for row in rows_of(path)[1:]]


def check_goes_on(house, changes):
    job = house.submit(spec(**changes), "--wait")
    assert job["state"] == "SUCCEEDED", job
    own = values(job["predictions"]["path"])
    assert len(own) == 2 * HORIZON, own
    for later in ("whole.csv", "history.csv"):
        again = house.json("predict", job["id"], "--data", f"{house.data}/{later}", "--budget", "20s")
        assert (again["state"], again["quality"]) == ("SUCCEEDED", job["quality"]), again
        table = rows_of(again["predictions"]["path"])
        assert table[0] == ["s t", "value"], table
        assert [row[0] for row in table[1:]] == [f"{s} {ROWS + i}" for s in "ab" for i in range(HORIZON)], table
        assert [float(row[1]) for row in table[1:]] == own, (changes, later, table, own)
    return job


@case("Trees, networks, floors and their mix predict later rows as they predict their own test rows")
def _():
    with House(slots=2) as house:
        write(house, "train.csv", rows("a", 0, ROWS), rows("b", 0, ROWS))
        ends = [rows(s, ROWS, ROWS + HORIZON, target=False) for s in "ab"]
        write(house, "test.csv", *ends)
        # The rows to be predicted stand in the file, or are those that follow it.
        write(house, "whole.csv", rows("a", 0, ROWS), ends[0], rows("b", 0, ROWS), ends[1])
        write(house, "history.csv", rows("a", 0, ROWS), rows("b", 0, ROWS))
        house.start()
        check_goes_on(house, {"model": {"lightgbm": {"num_iterations": 30}}})
        check_goes_on(house, {"model": {"mlp": {"hidden": [16]}}, "train": {"epochs": 3}})
        job = check_goes_on(house, {"model": {"automatic": {"trials": 2}}})

        # More rows than were known: later forecasts differ, and a file that does not go on is refused.
        later = write(house, "later.csv", rows("a", 100, ROWS + 40))
        more = house.json("predict", job["id"], "--data", later, "--budget", "20s")
        table = rows_of(more["predictions"]["path"])
        assert [row[0] for row in table[1:]] == [f"a {ROWS + 40 + i}" for i in range(HORIZON)], table
        whole = rows("a", 0, ROWS)
        for name, lines, words in (
                ("unknown.csv", rows("c", 0, ROWS), "row 1, column 's': series 'c' is unknown"),
                ("gap.csv", whole[:50] + whole[52:], "2 rows are missing between"),
                ("short.csv", whole[-10:], "too short: 10 rows"),
                ("bad.csv", whole[:-1] + ["219,a,1,much"], "'much' is not a finite number")):
            path = write(house, name, lines)
            refused = house.json("predict", job["id"], "--data", path, "--budget", "20s", code=1)
            assert refused["state"] == "FAILED" and words in refused["end_message"], refused


if __name__ == "__main__":
    main()
