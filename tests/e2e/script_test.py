"""Networks that users bring, through trainctl, on the standalone daemon."""
import hashlib
import json
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House


def bring(house, module):
    """The digits and a module, in the house's folder of data; the Job's spec."""
    for name in ("examples/digits/train.csv", "examples/digits/test.csv", module):
        shutil.copy(name, house.data)
    return {
        "api": "v1", "name": "own", "cache": "off",
        "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "digit", "id": "id",
                 "folds": 2, "seed": 7},
        "model": {"script": {"file": os.path.basename(module)}},
        "train": {"epochs": 60, "batch": 32, "patience": 0, "precision": "fp32",
                  "checkpoint_every": "100ms"},
        "budget": {"time": "45s"},
    }


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@case("A user's own network is trained, goes on after its Rank was killed, and predicts later rows",
      limit_s=150)
def _():
    with House(slots=1) as house:
        module = "examples/own_model/model.pt"
        spec = bring(house, module)
        house.start("--allow-script", digest(module))
        job = house.submit(spec)
        house.until_saved(job["id"])
        os.remove(os.path.join(house.data, "model.pt"))  # the Job has its own by now
        for pid in house.processes("trainrank"):
            house.kill(pid)
        job = house.wait(job["id"])
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert job["scores"]["oof"] > 0.95, job["scores"]
        assert any(a["end_reason"] == "RANK_DIED" for a in job["attempts"]), job["attempts"]
        house.check_resumed(job)
        later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
        with open(job["predictions"]["path"], "rb") as a, open(later["predictions"]["path"], "rb") as b:
            assert a.read() == b.read()


@case("What the operator has not allowed does not run, and is told by its digest")
def _():
    with House(slots=1) as house:
        module = "examples/own_model/model.pt"
        spec = bring(house, module)
        house.start()
        result = house.cli("submit", "-f", house.write_spec(spec))
        assert result.returncode != 0
        assert f"--allow-script {digest(module)}" in result.stderr, result.stderr
        assert "model.script.file" in result.stderr, result.stderr


@case("A module that loops for ever, or has other widths, ends its Job before anything is trained",
      limit_s=120)
def _():
    with House(slots=1) as house:
        house.start("--allow-script", "any")
        for module, what in (("endless", "does it loop for ever?"),
                             ("wide", "forward of 7 rows gives [7, 11], not [7, 10]")):
            spec = bring(house, f"tests/e2e/scripts/{module}.pt")
            job = house.wait(house.submit(spec)["id"])
            assert (job["state"], job["end_reason"]) == ("FAILED", "USER_ERROR"), job
            assert what in json.dumps(job), job
            assert not any(a["task"].startswith("fold") for a in job["attempts"]), job["attempts"]


main()
