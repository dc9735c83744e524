"""Fine-tuning image networks from folders as timm saves them, on the standalone daemon."""
import array
import glob
import json
import math
import os
import random
import struct

from tests.cases import case, main
from tests.e2e.harness import House
from tests.e2e.images import job_of, write_images

SIZE = 16
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def resnet18(classes):
    """name -> shape, as torchvision and timm name them."""
    shapes = {"conv1.weight": [64, 3, 7, 7], "fc.weight": [classes, 512], "fc.bias": [classes]}

    def norm(name, width):
        shapes.update({f"{name}.{part}": [width] for part in ("weight", "bias", "running_mean", "running_var")})

    norm("bn1", 64)
    before = 64
    for stage, width in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            at = f"layer{stage}.{block}"
            shapes[f"{at}.conv1.weight"] = [width, before, 3, 3]
            shapes[f"{at}.conv2.weight"] = [width, width, 3, 3]
            norm(f"{at}.bn1", width)
            norm(f"{at}.bn2", width)
            if before != width:
                shapes[f"{at}.downsample.0.weight"] = [width, before, 1, 1]
                norm(f"{at}.downsample.1", width)
            before = width
    return shapes


def values_of(name, shape, chance):
    """Random weights, of He's scale, that repeat after a prime number of them; the identity for norms."""
    count = math.prod(shape)
    if len(shape) > 1:
        scale = math.sqrt(2 / math.prod(shape[1:]))
        some = array.array("f", [chance.gauss(0, scale) for _ in range(4099)])
        return (some.tobytes() * (count // len(some) + 1))[:4 * count]
    return array.array("f", [1.0 if name.endswith((".running_var", "n1.weight", "n2.weight", ".1.weight")) else 0.0] * count).tobytes()


def write_folder(house, name="resnet18", without=(), **config):
    chance = random.Random(7)
    header, data = {}, [b""]
    at = 0

    def add(tensor, dtype, shape, values):
        nonlocal at
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(values)]}
        data.append(values)
        at += len(values)

    for tensor, shape in resnet18(classes=10).items():
        if tensor not in without:
            add(tensor, "F32", shape, values_of(tensor, shape, chance))
    add("bn1.num_batches_tracked", "I64", [], bytes(8))
    text = json.dumps(header).encode()
    folder = os.path.join(house.data, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architecture": "resnet18", "num_classes": 10, "pretrained_cfg": {
            "input_size": [3, SIZE, SIZE], "mean": MEAN, "std": DEVIATION, "label_names": ["x"] * 30000}, **config}, f)


def spec_of(folder="resnet18", epochs=1, **image):
    spec = job_of(epochs=epochs, model={"cnn": {"architecture": "resnet18"}, "pretrained": {"folder": folder}})
    spec["data"]["image"] = image
    del spec["train"]["learning_rate"]
    return spec


@case("A ResNet from timm's folder is fine-tuned at its size and scale of pixels, and predicts later images", limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=40, test=6)
        write_folder(house)
        job = house.submit(spec_of(epochs=10), "--wait")
        assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job
        # Not the last layer, which has ten classes in the file and three here.
        told = [d for d in job["decisions"] if d["rule"] == "pretrained"]
        assert [d["to"] for d in told] == ["100/102 parameters"] * 2, told
        assert any("fc.weight is [10, 512] in the file, but [3, 512]" in w for w in job["warnings"]), job["warnings"]
        assert not any("num_batches_tracked" in w for w in job["warnings"]), job["warnings"]
        spec = json.loads(house.cli("plan", house.write_spec(spec_of()), "-o", "json").stdout)["resolved"]
        assert spec["data"]["image"]["size"] == SIZE and spec["train"]["learning_rate"] == 1e-4, spec
        scales = []
        for path in glob.glob(os.path.join(house.results(job["id"]), "attempts", "*", "model.json")):
            with open(path) as f:
                scales.append(json.load(f)["model"].get("image"))
        image, *others = scales
        assert others == [image], scales
        for mean, scale, m, d in zip(image["mean"], image["inverse_scale"], MEAN, DEVIATION):
            assert abs(mean - 255 * m) < 1e-3 and abs(scale * 255 * d - 1) < 1e-5, image
        later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
        assert later["state"] == "SUCCEEDED", later


@case("What does not fit the folder is refused: another network, grey images, a file without a part of the body")
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=12, test=6)
        write_folder(house)
        other = spec_of()
        other["model"]["cnn"]["architecture"] = "resnet34"
        ran = house.cli("submit", "-f", house.write_spec(other))
        assert ran.returncode != 0, ran
        assert 'architecture is "resnet18", and model.cnn.architecture says resnet34' in ran.stderr, ran.stderr
        ran = house.cli("submit", "-f", house.write_spec(spec_of(channels=1)))
        assert ran.returncode != 0 and "sees images in colour, and data.image.channels is 1" in ran.stderr, ran.stderr
        write_folder(house, "torn", without=("layer3.0.bn2.running_var",))
        job = house.submit(spec_of("torn"), "--wait", code=1)
        assert job["state"] == "FAILED", job
        assert '"layer3.0.bn2.running_var" is not in the file' in job["end_message"], job["end_message"]


main()
