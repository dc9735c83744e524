"""Fine-tuning text networks from folders as Hugging Face's transformers saves them, on the standalone daemon."""
import glob
import json
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House

FOLDERS = "tests/golden/texts"
# Not those of the last layer, nor of the column beside the text.
TAKEN = {"bert": "39/43 parameters", "roberta": "39/43 parameters", "distilbert": "38/42 parameters",
         "deberta_v3": "40/68 parameters", "modernbert": "28/32 parameters"}


def house_with(house, *families, rows=240):
    lines = ["text,stars,label"] + [
        f"the room was {'clean' if i % 2 else 'cold'} and the staff {'friendly' if i % 3 else 'slow'} on day {i % 7},"
        f"{i % 5},{'up' if i % 2 else 'down'}" for i in range(rows)]
    house.write("train.csv", "\n".join(lines) + "\n")
    house.write("test.csv", "\n".join(lines[:41]) + "\n")
    for family in families:
        shutil.copytree(os.path.join(FOLDERS, family), os.path.join(house.data, family))
        for path in glob.glob(os.path.join(house.data, family, "*")):
            os.chmod(path, 0o644)
    house.start()


def spec_of(family, epochs=6, **text):
    return {
        "api": "v1", "name": family, "cache": "off", "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": "train.csv", "test": "test.csv", "target": "label", "folds": 2, "seed": 7,
                 "text": {"columns": ["text"], **text}},
        "model": {"text": {"architecture": family}, "pretrained": {"folder": family}},
        "train": {"epochs": epochs, "batch": 16, "patience": 0, "precision": "fp32", "learning_rate": 0.002},
        "budget": {"time": "60s"},
    }



@case("A RoBERTa from a folder is fine-tuned, goes on from its checkpoint after a kill, and predicts later rows", limit_s=150)
def _():
    with House(slots=1) as house:
        house_with(house, "roberta")
        spec = spec_of("roberta", epochs=150)
        spec["train"]["checkpoint_every"] = "100ms"
        job = house.submit(spec)
        house.until_saved(job["id"])
        shutil.rmtree(os.path.join(house.data, "roberta"))  # the Job has its own by now
        house.kill_running("trainrank")
        done = house.wait(job["id"])
        assert done["state"] == "SUCCEEDED", done
        assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
        house.check_resumed(done)
        # The head's last layer is of three classes in the file and of two here, beside a column.
        told = [d for d in done["decisions"] if d["rule"] == "pretrained"]
        assert [d["to"] for d in told] == [TAKEN["roberta"]] * 2, told
        assert any("classifier.out_proj.weight is [3, 16] in the file, but [2, 48] in this network" in w
                   for w in done["warnings"]), done["warnings"]
        later = house.json("predict", done["id"], "--data", os.path.join(house.data, "test.csv"))
        assert later["state"] == "SUCCEEDED", later


@case("BERT and DistilBERT learn from their folders, the one with tokenizer.json, the other with vocab.txt", limit_s=120)
def _():
    with House(slots=2) as house:
        house_with(house, "bert", "distilbert")
        for family in ("bert", "distilbert"):
            done = house.submit(spec_of(family, epochs=8), "--wait")
            assert (done["state"], done["quality"]) == ("SUCCEEDED", "FULL"), done
            told = [d["to"] for d in done["decisions"] if d["rule"] == "pretrained"]
            assert told == [TAKEN[family]] * 2, (told, done["warnings"])


@case("A BERT, a DistilBERT and a ModernBERT go on from their checkpoints after a kill, and end FULL",
      limit_s=240)
def _():
    with House(slots=1) as house:
        house_with(house, "bert", "distilbert", "modernbert", rows=120)
        for family in ("bert", "distilbert", "modernbert"):
            # Enough time for all epochs where others use the cores, too.
            spec = {**spec_of(family, epochs=50), "budget": {"time": "150s"}}
            spec["train"]["checkpoint_every"] = "100ms"
            job = house.submit(spec)
            house.until_saved(job["id"])
            house.kill_running("trainrank")
            done = house.wait(job["id"], limit_s=150)
            assert (done["state"], done["quality"]) == ("SUCCEEDED", "FULL"), done
            assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
            house.check_resumed(done)
            told = [d["to"] for d in done["decisions"] if d["rule"] == "pretrained"]
            assert set(told) == {TAKEN[family]}, (told, done["warnings"])


@case("A DeBERTa v3 learns by low-rank changes of its layers, through a kill, and predicts later rows", limit_s=150)
def _():
    with House(slots=1) as house:
        house_with(house, "deberta_v3")
        spec = spec_of("deberta_v3", epochs=120)
        spec["model"]["lora"] = {"rank": 4}
        spec["train"].update({"checkpoint_every": "100ms", "swa": 0.25})
        job = house.submit(spec)
        house.until_saved(job["id"])
        house.kill_running("trainrank")
        done = house.wait(job["id"])
        assert (done["state"], done["quality"]) == ("SUCCEEDED", "FULL"), done
        house.check_resumed(done)
        told = [d["to"] for d in done["decisions"] if d["rule"] == "pretrained"]
        assert told == [TAKEN["deberta_v3"]] * 2, (told, done["warnings"])
        assert done["scores"]["oof"] > 0.9, done["scores"]
        later = house.json("predict", done["id"], "--data", os.path.join(house.data, "test.csv"))
        assert later["state"] == "SUCCEEDED", later


@case("A search tries ranks of the low-rank changes, and each trial is trained with its own", limit_s=150)
def _():
    with House(slots=2) as house:
        house_with(house, "bert")
        spec = spec_of("bert", epochs=8)
        spec["model"]["lora"] = {"rank": 2}
        spec["search"] = {"trials": 4, "method": "random", "space": {
            "model.lora.rank": [2, 4, 8], "train.learning_rate": "log(1e-3, 1e-2)"}}
        done = house.wait(house.submit(spec)["id"], 90)
        assert done["state"] == "SUCCEEDED", done
        trials = house.json("trials", done["id"])["trials"]
        ranks = {t["settings"]["model.lora.rank"] for t in trials}
        assert len(ranks) > 1, trials
        assert sum(t["folds"]["done"] == 2 for t in trials) > 1, trials


@case("A ModernBERT learns on two slots at a rate that it finds, its last layers first", limit_s=150)
def _():
    with House(slots=2) as house:
        house_with(house, "modernbert")
        spec = spec_of("modernbert", epochs=8)
        spec["resources"] = {"slots": 2}
        del spec["train"]["learning_rate"]
        spec["train"].update({"freeze": {"epochs": 2}, "find_learning_rate": True})
        done = house.submit(spec, "--wait")
        # Weights that were never trained learn little in this time: the floor may be better.
        assert done["state"] == "SUCCEEDED" and all(f["progress"]["done"] > 2 for f in done["folds"]), done
        rules = [d["rule"] for d in done["decisions"]]
        assert [rules.count(r) for r in ("pretrained", "freeze", "learning_rate")] == [2, 2, 2], done["decisions"]
        assert all(d["to"] == TAKEN["modernbert"] for d in done["decisions"] if d["rule"] == "pretrained"), done
        points = [p for p in house.json("metrics", done["id"])["points"] if p["name"] == "learning_rate"]
        assert all(p["value"] == 0.001 for p in points if p["epoch"] < 2), points
        found = [float(d["to"]) for d in done["decisions"] if d["rule"] == "learning_rate"]
        assert max(p["value"] for p in points if p["epoch"] > 2) <= max(found) * 1.1, (points, found)


@case("What a folder lacks, or what does not fit it, is said at Submit or before a fold is trained", limit_s=90)
def _():
    with House(slots=1) as house:
        house_with(house, "bert", "roberta")

        def refused(spec, what):
            answer = house.cli("submit", "-f", house.write_spec(spec))
            assert answer.returncode == 2 and what in answer.stderr, (what, answer)

        def fails(spec, what, reason="USER_ERROR"):
            job = house.submit(spec, "--wait", code=1)
            assert (job["state"], job["end_reason"]) == ("FAILED", reason), job
            assert what in json.dumps(job), (what, job)
            assert not any(a["task"].startswith("fold") for a in job["attempts"]), job["attempts"]

        refused(spec_of("bert", max_tokens=25), "has 24 positions for the tokens of a text")
        spec = spec_of("bert")
        spec["model"]["text"]["architecture"] = "distilbert"
        refused(spec, "has model_type 'bert', but model.text.architecture is distilbert")
        spec["model"]["text"] = {"architecture": "bert", "layers": 12}
        refused(spec, "whose config.json tells it; leave it out")
        del spec["model"]["pretrained"]
        spec["model"]["text"] = {"architecture": "bert"}
        refused(spec, "needs model.pretrained.folder")
        config = os.path.join(house.data, "bert", "config.json")
        with open(config) as f:
            sizes = json.load(f)
        house.write("bert/config.json", json.dumps({**sizes, "num_hidden_layers": 3, "intermediate_size": 32}))
        fails({**spec_of("bert"), "name": "layers"}, "bert.encoder.layer.2.output.dense.weight")
        fails({**spec_of("bert"), "name": "sizes"}, "is [24, 16] in the file, but [32, 16] in this network")
        with open(os.path.join(house.data, "roberta", "tokenizer.json")) as f:
            house.write("roberta/tokenizer.json", f.read().replace('"BPE"', '"WordLevel"'))
        fails(spec_of("roberta"), "a model of type 'WordLevel' is not supported", reason="DATA_ERROR")
        os.remove(config)
        refused(spec_of("bert"), "config.json")


main()
