"""Jobs that start from weights of a file, through trainctl, on the standalone daemon."""
import glob
import json
import os
import re
import struct

from tests.cases import case, main
from tests.e2e.harness import House


def read_safetensors(path):
    """name -> (dtype, shape, bytes)."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])])
            for name, t in header.items() if name != "__metadata__"}


def safetensors(tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def halves(name, tensor):
    """A matrix as two tensors, upper and lower rows."""
    dtype, (rows, columns), values = tensor
    cut = rows // 2 * columns * 4
    return {f"{name}.upper": (dtype, [rows // 2, columns], values[:cut]),
            f"{name}.lower": (dtype, [rows - rows // 2, columns], values[cut:])}


def fold_of(checkpoint):
    """None: its Rank is just removing it, for a newer one."""
    try:
        with open(checkpoint.replace(".safetensors", ".json")) as f:
            return json.load(f)["fold"]
    except FileNotFoundError:
        return None


def weights_of(house, job):
    """The best weights of the Job's fold 0, named and cut as somebody else might."""
    checkpoints = []
    for path in glob.glob(os.path.join(house.results(job), "attempts", "*", "checkpoint-*.json")):
        if fold_of(path) == 0:
            step = int(re.search(r"checkpoint-(\d+)\.json$", path).group(1))
            checkpoints.append((step, path.replace(".json", ".safetensors")))
    tensors = read_safetensors(max(checkpoints)[1])
    ours = {n: t for n, t in tensors.items() if n.startswith(("layers.", "embeddings.")) and "exp_avg" not in n}
    theirs = {"trained.steps": ("I64", [1], bytes(8))}
    for name, tensor in ours.items():
        theirs.update(halves(f"net.{name}", tensor) if name == "layers.1.weight" else {f"net.{name}": tensor})
    return theirs


MAP = """# names of another program
layers.{i}.*: net.layers.{i}.*
layers.1.weight: net.layers.1.weight.upper, net.layers.1.weight.lower
embeddings.*: net.embeddings.*
"""


def first_loss(house, job):
    points = house.json("metrics", job)
    points = points["points"] if isinstance(points, dict) else points
    losses = [p for p in points if p["name"] == "train_loss" and int(p.get("fold", 0)) == 0]
    return min(losses, key=lambda p: (int(p["attempt"]), float(p["epoch"])))["value"]


@case("A Job from weights of a file starts below the one without, and goes on from its checkpoint", limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        plain = house.spec(rows=1200, folds=2, epochs=12)
        before = house.submit(plain, "--wait")
        assert before["state"] == "SUCCEEDED", before
        weights = house.write("weights.safetensors", safetensors(weights_of(house, before["id"])))
        house.write("map.yaml", MAP)
        spec = house.spec(rows=1200, folds=2, epochs=3000)
        spec["train"]["checkpoint_every"] = "100ms"
        spec["model"]["pretrained"] = {"file": "weights.safetensors", "map_file": "map.yaml"}
        job = house.submit(spec)
        house.until_saved(job["id"])
        os.remove(weights)  # the Job has its own by now
        house.kill_running("trainrank")
        done = house.wait(job["id"])
        assert done["state"] == "SUCCEEDED", done
        assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
        house.check_resumed(done)
        # Each fold took them once: the Attempt after the killed one did not.
        told = [d for d in done["decisions"] if d["rule"] == "pretrained"]
        assert [d["to"] for d in told] == ["7/7 parameters"] * 2, done["decisions"]
        assert any("7 of 7 parameters" in w and "trained.steps" in w for w in done["warnings"]), done["warnings"]
        assert first_loss(house, done["id"]) < 0.7 * first_loss(house, before["id"]), (
            first_loss(house, done["id"]), first_loss(house, before["id"]))
        # Other weights, other folds: nothing of the Job without is taken over.
        assert not any(f.get("reused") for f in done["folds"]), done["folds"]


@case("Two Ranks start from the same weights, and cached folds are those of the weights and the map", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        before = house.submit(house.spec(folds=2, epochs=6), "--wait")
        house.write("weights.safetensors", safetensors(weights_of(house, before["id"])))
        house.write("map.yaml", MAP)
        spec = house.spec(folds=2, epochs=2, cache="use")
        spec["resources"] = {"slots": 2}
        spec["model"]["pretrained"] = {"file": "weights.safetensors", "map_file": "map.yaml"}
        job = house.submit(spec, "--wait")
        assert job["state"] == "SUCCEEDED", job
        assert first_loss(house, job["id"]) < 0.7 * first_loss(house, before["id"])
        again = house.submit({**spec, "name": "again"}, "--wait")
        assert all(f.get("reused") for f in again["folds"]), again["folds"]
        spec["model"]["pretrained"] = {"file": "weights.safetensors", "map": {"layers.0.*": "net.layers.0.*"}}
        other = house.submit({**spec, "name": "other"}, "--wait")
        assert other["state"] == "SUCCEEDED" and not any(f.get("reused") for f in other["folds"]), other["folds"]
        assert any("start at random: embeddings.0.weight" in w for w in other["warnings"]), other["warnings"]


@case("A text encoder goes on from the weights of another Job and the pieces that they are of", limit_s=120)
def _():
    with House(slots=2) as house:
        lines = ["text,label"] + [f"{'good' if i % 2 else 'bad'} day number {i % 7} of a {'long' if i % 3 else 'short'} year,"
                                  f"{'up' if i % 2 else 'down'}" for i in range(300)]
        house.write("train.csv", "\n".join(lines) + "\n")
        house.start()
        spec = {
            "api": "v1", "name": "texts", "task": {"type": "classification", "metric": "accuracy"},
            "data": {"train": "train.csv", "target": "label", "folds": 2, "seed": 7,
                     "text": {"columns": ["text"], "max_tokens": 32, "tokenizer": "sentencepiece", "vocabulary": 80}},
            "model": {"text": {"width": 16, "heads": 2, "layers": 1, "feedforward": 16, "dropout": 0}},
            "train": {"epochs": 5, "batch": 32, "patience": 0, "precision": "fp32", "learning_rate": 0.003},
            "budget": {"time": "60s"},
        }
        before = house.submit(spec, "--wait")
        assert before["state"] == "SUCCEEDED", before
        with open(os.path.join(house.results(before["id"]), "tokenizer-0.model"), "rb") as f:
            house.write("pieces.model", f.read())
        checkpoint = max((p for p in glob.glob(os.path.join(house.results(before["id"]), "attempts", "*", "*.safetensors"))
                          if fold_of(p) == 0), key=os.path.getmtime)
        with open(checkpoint, "rb") as f:
            house.write("weights.safetensors", f.read())
        spec["model"]["pretrained"] = {"file": "weights.safetensors"}
        # Without its tokenizer a row of the table is nobody's: it starts at random, and the Job says why.
        other = house.submit({**spec, "name": "learnt"}, "--wait")
        assert any("tokens.weight belongs to tokens that each fold learns itself" in w for w in other["warnings"]), other["warnings"]
        spec["data"]["text"]["model_file"] = "pieces.model"
        job = house.submit({**spec, "name": "given"}, "--wait")
        assert job["state"] == "SUCCEEDED", job
        assert any("18 of 18 parameters" in w for w in job["warnings"]), job["warnings"]
        assert first_loss(house, job["id"]) < 0.7 * first_loss(house, before["id"])


@case("What does not fit ends the Job before anything is trained, with all mistakes and both shapes")
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(folds=2, epochs=2)
        net = {"a": ("F32", [2, 3], bytes(24)), "ids": ("I64", [1], bytes(8))}
        house.write("weights.safetensors", safetensors(net))
        spec["model"]["pretrained"] = {"file": "weights.safetensors", "map": {
            "layers.0.bias": "a", "layers.1.bias": "gone", "layers.2.bias": "ids", "head.weight": "a"}}
        job = house.submit(spec, "--wait", code=1)
        assert (job["state"], job["end_reason"]) == ("FAILED", "USER_ERROR"), job
        text = json.dumps(job)
        for what in ("head.weight: the model has no such parameter", 'layers.0.bias [32]: \\\\\\"a\\\\\\" is [2, 3]',
                     'layers.1.bias [32]: \\\\\\"gone\\\\\\" is not in the file', "is I64, not F32, F16 or BF16"):
            assert what in text or what.replace("\\\\\\", "\\") in text, (what, text)
        assert not any(a["task"].startswith("fold") for a in job["attempts"]), job["attempts"]
        house.write("weights.safetensors", struct.pack("<Q", 5000) + b"{}")
        job = house.submit({**spec, "name": "cut"}, "--wait", code=1)
        assert "the file ends within its header of 5000 bytes" in json.dumps(job), job


@case("A map with a mistake is refused at Submit, and so is a file outside the data roots")
def _():
    with House(slots=1) as house:
        house.start()
        house.write("weights.safetensors", safetensors({}))
        spec = house.spec(folds=2, epochs=2)
        for pretrained, what in (
                ({"file": "weights.safetensors", "map": {"layers.{i.weight": "x"}}, "braces hold one word"),
                ({"file": "/etc/passwd"}, "model.pretrained.file: /etc/passwd lies outside the data roots"),
                ({"file": "gone.safetensors"}, "No such file"),
                ({"map": {"a": "b"}}, "model.pretrained.file is missing")):
            spec["model"]["pretrained"] = pretrained
            answer = house.cli("submit", "-f", house.write_spec(spec))
            assert answer.returncode == 2 and what in answer.stderr, (what, answer)


main()
