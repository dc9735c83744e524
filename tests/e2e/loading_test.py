"""The program of docs/LOADING.md, which predicts with a Job's networks outside of traind."""
import csv
import json
import os
import re
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def program(having="def columns"):
    """The first program of the page that has these words."""
    with open(os.path.join(TREE, "docs/LOADING.md")) as f:
        return next(text for text in re.findall(r"```python\n(.*?)```", f.read(), re.S) if having in text)


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


def check_values(house, spec, tolerance):
    """The program's numbers are within tolerance(traind's number) of traind's."""
    job = house.wait(house.submit(spec)["id"])
    house.check_folds_answer(job)
    table = rows_of(job["predictions"]["path"])
    answers = predict(house, job, os.path.join(house.data, "test400.csv"))
    assert len(answers) == len(table) - 1, answers
    for answer, row in zip(answers, table[1:]):
        assert abs(float(answer) - float(row[1])) < tolerance(float(row[1])), (answer, row)


@case("The program of the page answers as traind does: a value in its own unit", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(epochs=30, task={"type": "regression", "metric": "rmse"})
        spec["data"]["target"] = "x0"
        check_values(house, spec, lambda value: 1e-4)


@case("The program of the page answers as traind does: a count, of which the network learns the logarithm", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(epochs=30, task={"type": "regression", "metric": "rmse"})
        for name in ("train400.csv", "test400.csv"):
            header, *rows = rows_of(os.path.join(house.data, name))
            at = header.index("x0")
            house.write(name, "\n".join([",".join(header + ["n"])] + [
                ",".join(row + [str(round(abs(float(row[at] or 0)) * 2))]) for row in rows]) + "\n")
        spec["data"]["target"], spec["train"]["loss"] = "n", {"kind": "poisson"}
        check_values(house, spec, lambda value: 1e-4 * (1 + value))


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def codes_of(attempt, rows):
    """The rows as boosted trees and kernels see them."""
    with open(os.path.join(attempt, "model.json")) as f:
        model = json.load(f)["model"]
    features, encoder, columns = model["input"]["features"], model["encoder"], {}
    for c in encoder["numeric"]:
        columns[c["feature"]] = number
    for c in encoder["categorical"]:
        words = {word: c["input_codes"][k] - 2 for k, word in enumerate(features[c["feature"]]["categories"])}
        columns[c["feature"]] = words.get
    return [[columns[f](row[features[f]["name"]].strip()) for f in sorted(columns)] for row in rows]


def first_model(house, spec):
    """Trains; the folder of the first model in the answer, and the test rows as it takes them."""
    job = house.wait(house.submit(spec)["id"])
    house.check_folds_answer(job)
    member = job["predictions"]["members"][0]
    attempt = os.path.join(house.results(job["id"]), "attempts", str(member["attempt"]))
    with open(os.path.join(house.data, "test400.csv")) as f:
        return attempt, codes_of(attempt, list(csv.DictReader(f)))


@case("The program of a kernel answers as traind does: classes and values", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        for target, task in (("", {}), ("x0", {"type": "regression", "metric": "rmse"})):
            spec = house.spec()
            spec["model"] = {"kernel": {}}
            del spec["train"]
            if target:
                spec["data"]["target"], spec["task"] = target, task
            attempt, rows = first_model(house, spec)
            path = house.write("kernel.py", program("class.weights") + """
import sys
rows = np.array(json.loads(sys.argv[2]), dtype=float)
print(np.abs(predict(sys.argv[1] + "/model.safetensors", rows) - np.load(sys.argv[1] + "/test.npy").reshape(len(rows), -1)).max())
""")
            result = subprocess.run([os.path.join(TREE, ".deps/venv/bin/python"), path, attempt, json.dumps(rows)],
                                    capture_output=True, text=True, timeout=60)
            assert result.returncode == 0, result.stderr
            assert float(result.stdout) < 1e-5, result.stdout


@case("The programs of a kernel and of transformed targets answer as traind does", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start()
        for metric in ("rmse", "mae"):
            spec = house.spec(task={"type": "regression", "metric": metric})
            spec["model"], spec["train"] = {"kernel": {}}, {"target_transform": "yeo_johnson"}
            spec["data"]["target"] = "x0"
            attempt, rows = first_model(house, spec)
            path = house.write("kernel.py", program("class.weights") + program("in_own_unit") + """
import sys
attempt = pathlib.Path(sys.argv[1])
z = predict(attempt / "model.safetensors", np.array(json.loads(sys.argv[2]), dtype=float))[:, 0]
transform = json.load(open(attempt / "model.json"))["model"]["encoder"]["target_transforms"][0]
smearing = json.load(open(sorted(attempt.glob("checkpoint-*.json"))[-1]))["trees"].get("best_smearing", [[]])[0]
print(len(smearing), np.abs(in_own_unit(z, transform, smearing) - np.load(attempt / "test.npy").ravel()).max())
""")
            result = subprocess.run([os.path.join(TREE, ".deps/venv/bin/python"), path, attempt, json.dumps(rows)],
                                    capture_output=True, text=True, timeout=60)
            assert result.returncode == 0, result.stderr
            groups, error = result.stdout.split()
            assert int(groups) == (8 if metric == "rmse" else 0), groups
            assert float(error) < 1e-4, error


main()
