"""Jobs on texts, through trainctl, on the standalone daemon."""
import glob
import os
import subprocess
import sys

from tests.cases import case, main
from tests.e2e.harness import House, rows_of

REVIEWS = os.path.join(os.getcwd(), "examples/reviews")


def spec(**train):
    return {
        "api": "v1", "name": "reviews", "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "verdict", "folds": 3, "seed": 7,
                 "text": {"columns": ["review"], "max_tokens": 64}},
        "model": {"text": {"width": 32, "heads": 2, "layers": 2, "feedforward": 64, "dropout": 0}},
        "train": {"epochs": 12, "batch": 32, "patience": 0, "precision": "fp32", "learning_rate": 0.003, **train},
        "budget": {"time": "120s"},
    }


def reviews(house, rows=2000, test=200):
    subprocess.run([sys.executable, os.path.join(REVIEWS, "make_data.py"), "--out", house.data, "--rows", str(rows),
                    "--test", str(test)], check=True)


@case("Words in their order tell more than a bag of them, and a killed Rank goes on from its checkpoint", limit_s=240)
def _():
    with House(slots=2) as house:
        reviews(house)
        house.start()
        job = house.submit(spec(checkpoint_every="200ms"))["id"]
        house.until(job, "a checkpoint", lambda _: glob.glob(
            os.path.join(house.results(job), "attempts", "*", "checkpoint-*.json")), 60)
        house.kill_all("trainrank")
        done = house.wait(job, 150)
        assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
        assert done["state"] == "SUCCEEDED", done
        assert done["scores"]["oof"] > done["scores"]["floor"] + 0.1, done["scores"]
        assert done["scores"]["test"] > done["scores"]["floor"] + 0.1, done["scores"]
        assert len(rows_of(done["predictions"]["path"])) == 201
        # A later file needs what each model has learnt of words.
        later = house.json("predict", job, "--data", os.path.join(house.data, "test.csv"))
        assert later["predictions"]["sha256"] == done["predictions"]["sha256"], (later, done)


@case("Two Ranks train on SentencePiece's pieces, in bf16, with accumulation and activations computed again")
def _():
    with House(slots=2) as house:
        reviews(house, rows=400, test=40)
        house.start()
        wanted = spec(epochs=2, precision="bf16", accumulation=2, recompute="on")
        wanted["data"]["text"].update(tokenizer="sentencepiece", vocabulary=300)
        wanted["resources"] = {"slots": 2}
        job = house.submit(wanted, "--wait")
        assert job["state"] == "SUCCEEDED", job
        assert [(f["state"], f["attempts"], f["progress"]["done"]) for f in job["folds"]] == [("DONE", 1, 2)] * 3, job
        assert os.path.exists(os.path.join(house.results(job["id"]), "tokenizer-2.model"))
        assert len(rows_of(job["predictions"]["path"])) == 41


@case("A text that cannot be read is named by its file and place, and a column that is not there before anything runs")
def _():
    with House(slots=1) as house:
        reviews(house, rows=60, test=20)
        house.start()
        wrong = spec()
        wrong["data"]["text"]["columns"] = ["reviev"]
        answer = house.cli("submit", "-f", house.write_spec(wrong))
        assert answer.returncode == 2 and "did you mean 'review'" in answer.stderr, answer
        with open(os.path.join(house.data, "train.csv"), "ab") as f:
            f.write(b"caf\xe9,2,liked\n")
        job = house.submit(spec(), "--wait", code=1)
        assert job["state"] == "FAILED" and "train.csv: line 62" in str(job), job


main()
