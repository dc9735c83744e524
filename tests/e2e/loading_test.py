"""The program of docs/LOADING.md, which predicts with a Job's networks outside of traind."""
import os
import re
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def program():
    """The first program of the page."""
    with open(os.path.join(TREE, "docs/LOADING.md")) as f:
        return re.search(r"```python\n(.*?)```", f.read(), re.S).group(1)


def predict(house, job, test):
    """What the program prints, line by line."""
    path = house.write("predict.py", program())
    result = subprocess.run([os.path.join(TREE, ".deps/venv/bin/python"), path, house.results(job["id"]), test],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


@case("The program of the page answers as traind does: numbers, missing values and categories", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        job = house.wait(house.submit(house.spec(epochs=30))["id"])
        house.check_folds_answer(job)
        table = rows_of(job["predictions"]["path"])
        assert predict(house, job, os.path.join(house.data, "test400.csv")) == [row[1] for row in table[1:]]


@case("The program of the page answers as traind does: a value in its own unit", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(epochs=30, task={"type": "regression", "metric": "rmse"})
        spec["data"]["target"] = "x0"
        job = house.wait(house.submit(spec)["id"])
        house.check_folds_answer(job)
        table = rows_of(job["predictions"]["path"])
        answers = predict(house, job, os.path.join(house.data, "test400.csv"))
        assert len(answers) == len(table) - 1, answers
        for answer, row in zip(answers, table[1:]):
            assert abs(float(answer) - float(row[1])) < 1e-4, (answer, row)


main()
