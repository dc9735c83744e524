"""Jobs on texts, through trainctl, on the standalone daemon."""
import os
import random
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
        house.until_saved(job, 60)
        house.kill_running("trainrank")
        done = house.wait(job, 150)
        assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
        assert done["state"] == "SUCCEEDED", done
        house.check_resumed(done)
        assert done["scores"]["oof"] > done["scores"]["floor"] + 0.05, done["scores"]
        assert done["scores"]["test"] > done["scores"]["floor"] + 0.05, done["scores"]
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
            f.write(b"caf\x81,2,liked\n")  # no character of Windows-1252 either
        answer = house.cli("submit", "-f", house.write_spec(spec()))
        assert answer.returncode == 2 and "train.csv: row 61 (line 62), column" in answer.stderr, answer
        assert "byte 0x81" in answer.stderr, answer


def prices(rows, seed):
    """Descriptions and a size beside them; what the words are worth depends on the one before them."""
    chance = random.Random(seed)
    worth = {"garden": 40, "cellar": 15, "balcony": 25, "garage": 30}
    lines = ["description,size,price"]
    for i in range(rows):
        words, price, size = [], 50.0, chance.uniform(1, 10)
        for _ in range(chance.randint(0, 12)):
            thing, no = chance.choice(list(worth)), chance.random() < 0.4
            words.append(("no " if no else "a ") + thing)
            price += 0 if no else worth[thing]
        lines.append(f"\"{', '.join(words)}\",{size:.2f},{price * size:.1f}")
    return "\n".join(lines) + "\n"


@case("A positive number is told from a text and a number beside it, judged by SMAPE", limit_s=150)
def _():
    with House(slots=2) as house:
        house.write("train.csv", prices(1500, 1))
        house.write("test.csv", prices(200, 2))
        house.start()
        wanted = spec(epochs=15, loss={"kind": "smape"}, learning_rate=0.005)
        wanted["task"] = {"type": "regression", "metric": "smape"}
        wanted["data"].update(target="price", text={"columns": ["description"], "max_tokens": 64})
        job = house.submit(wanted, "--wait")
        house.check_folds_answer(job)
        assert job["scores"]["oof"] < 0.6 * job["scores"]["floor"], job["scores"]
        table = rows_of(job["predictions"]["path"])
        truth = [float(r[2]) for r in rows_of(os.path.join(house.data, "test.csv"))[1:]]
        found = [float(r[1]) for r in table[1:]]
        # The metric is defined over all rows; a row without a word is among them.
        smape = 100 * sum(2 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(truth, found)) / len(truth)
        assert abs(smape - job["scores"]["test"]) < 1e-3 * smape, (
            smape, job["scores"])
        assert min(found) > 0, min(found)


main()
