"""Logs of a Job's Attempts and of the Worker, through trainctl."""
import json
import re

from tests.cases import case, main
from tests.e2e.harness import House


def lines(house, *arguments):
    """The lines as JSON has them."""
    result = house.cli("logs", *arguments, "-o", "jsonl")
    assert result.returncode == 0, result
    return [json.loads(line) for line in result.stdout.splitlines()]


@case("The logs of each Attempt are read, filtered and followed to the Job's end", limit_s=90)
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=5))
        followed = house.cli("logs", job["id"], "--follow")
        assert followed.returncode == 0, followed
        job = house.job(job["id"])
        assert job["state"] == "SUCCEEDED", job
        every = lines(house, job["id"])
        assert len(followed.stdout.splitlines()) == len(every), (followed.stdout, every)
        assert {line["task"] for line in every} >= {"fold-0", "fold-1"}, every
        assert all(line["at"] and line["level"] == "info" and line["rank"] == 0 for line in every), every
        assert [line["attempt"] for line in every] == sorted(line["attempt"] for line in every), every
        fold = lines(house, job["id"], "--fold", "1")
        assert fold == [line for line in every if line["task"] == "fold-1"] and fold, (fold, every)
        found = lines(house, job["id"], "--grep", r"fold 1 rank \d")
        assert found and all(re.search(r"fold 1 rank \d", line["text"]) for line in found), found
        assert lines(house, job["id"], "--level", "error") == []
        assert lines(house, job["id"], "--rank", "1") == []
        tail = lines(house, job["id"], "--fold", "1", "--tail", "1")
        assert tail == fold[-1:], (tail, fold)
        assert lines(house, job["id"], "--since", "2999-01-01T00:00:00Z") == []
        bad = house.cli("logs", job["id"], "--grep", "(")
        assert bad.returncode == 2 and "is no regular expression" in bad.stderr, bad
        worker = lines(house, "--worker", "--grep", "joined traind")
        assert len(worker) == 1 and worker[0]["task"] == "", worker


@case("diff compares specs and results, and traind's log is JSON on request", limit_s=90)
def _():
    with House(slots=1) as house:
        house.start("--log-format", "json")
        first = house.wait(house.submit(house.spec(folds=2, epochs=3))["id"])
        second = house.wait(house.submit(house.spec(folds=2, epochs=4))["id"])
        found = house.json("diff", first["id"], second["id"])["differences"]
        assert {"path": "spec.train.epochs", "a": 3, "b": 4} in found, found
        with open(f"{house.root}/traind.log") as f:
            logged = [json.loads(line) for line in f]
        assert logged and all(line["level"] == "info" and line["text"] for line in logged), logged


main()
