"""Folders with image networks as timm saves them, with random weights."""
import array
import json
import math
import os
import random
import struct

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Shapes(dict):
    """name -> shape, as timm names them."""

    def linear(self, name, inside, out, *kernel):
        self.update({f"{name}.weight": [out, inside, *kernel], f"{name}.bias": [out]})

    def norm(self, name, width):
        self.update({f"{name}.weight": [width], f"{name}.bias": [width]})

    def batch_norm(self, name, width):
        self.update({f"{name}.{part}": [width] for part in ("weight", "bias", "running_mean", "running_var")})


def resnet18(classes):
    shapes = Shapes({"conv1.weight": [64, 3, 7, 7]})
    shapes.batch_norm("bn1", 64)
    before = 64
    for stage, width in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            at = f"layer{stage}.{block}"
            shapes[f"{at}.conv1.weight"] = [width, before, 3, 3]
            shapes[f"{at}.conv2.weight"] = [width, width, 3, 3]
            shapes.batch_norm(f"{at}.bn1", width)
            shapes.batch_norm(f"{at}.bn2", width)
            if before != width:
                shapes[f"{at}.downsample.0.weight"] = [width, before, 1, 1]
                shapes.batch_norm(f"{at}.downsample.1", width)
            before = width
    shapes.linear("fc", 512, classes)
    return shapes


def vit_tiny_patch16_224(classes):
    width = 192
    shapes = Shapes({"cls_token": [1, 1, width], "pos_embed": [1, 197, width]})
    shapes.linear("patch_embed.proj", 3, width, 16, 16)
    for i in range(12):
        shapes.norm(f"blocks.{i}.norm1", width)
        shapes.linear(f"blocks.{i}.attn.qkv", width, 3 * width)
        shapes.linear(f"blocks.{i}.attn.proj", width, width)
        shapes.norm(f"blocks.{i}.norm2", width)
        shapes.linear(f"blocks.{i}.mlp.fc1", width, 4 * width)
        shapes.linear(f"blocks.{i}.mlp.fc2", 4 * width, width)
    shapes.norm("norm", width)
    shapes.linear("head", width, classes)
    return shapes


def convnext_atto(classes):
    shapes, before = Shapes(), 3
    for stage, (width, blocks) in enumerate(zip((40, 80, 160, 320), (2, 2, 6, 2))):
        if stage == 0:
            shapes.linear("stem.0", 3, width, 4, 4)
            shapes.norm("stem.1", width)
        else:
            shapes.norm(f"stages.{stage}.downsample.0", before)
            shapes.linear(f"stages.{stage}.downsample.1", before, width, 2, 2)
        for block in range(blocks):
            at = f"stages.{stage}.blocks.{block}"
            shapes[f"{at}.gamma"] = [width]
            shapes.linear(f"{at}.conv_dw", 1, width, 7, 7)
            shapes.norm(f"{at}.norm", width)
            shapes.linear(f"{at}.mlp.fc1", width, 4 * width, 1, 1)
            shapes.linear(f"{at}.mlp.fc2", 4 * width, width, 1, 1)
        before = width
    shapes.norm("head.norm", before)
    shapes.linear("head.fc", before, classes)
    return shapes


def efficientnet_b0(classes):
    shapes = Shapes({"conv_stem.weight": [32, 3, 3, 3]})
    shapes.batch_norm("bn1", 32)
    before = 32
    stages = ((1, 3, 16, 1), (6, 3, 24, 2), (6, 5, 40, 2), (6, 3, 80, 3), (6, 5, 112, 3), (6, 5, 192, 4), (6, 3, 320, 1))
    for stage, (widening, kernel, width, blocks) in enumerate(stages):
        for block in range(blocks):
            at, inside = f"blocks.{stage}.{block}", widening * before
            names = ["conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3"]
            if widening == 1:
                names = [None, None, "conv_dw", "bn1", "conv_pw", "bn2"]
            else:
                shapes[f"{at}.conv_pw.weight"] = [inside, before, 1, 1]
                shapes.batch_norm(f"{at}.bn1", inside)
            shapes[f"{at}.conv_dw.weight"] = [inside, 1, kernel, kernel]
            shapes.batch_norm(f"{at}.{names[3]}", inside)
            shapes.linear(f"{at}.se.conv_reduce", inside, before // 4, 1, 1)
            shapes.linear(f"{at}.se.conv_expand", before // 4, inside, 1, 1)
            shapes[f"{at}.{names[4]}.weight"] = [width, inside, 1, 1]
            shapes.batch_norm(f"{at}.{names[5]}", width)
            before = width
    shapes["conv_head.weight"] = [1280, 320, 1, 1]
    shapes.batch_norm("bn2", 1280)
    shapes.linear("classifier", 1280, classes)
    return shapes


NETWORKS = {made.__name__: made for made in (resnet18, vit_tiny_patch16_224, convnext_atto, efficientnet_b0)}


def values_of(name, shape, chance):
    """Random weights, of He's scale, that repeat after a prime number of them; the identity for norms."""
    count = math.prod(shape)
    if len(shape) > 1:
        scale = math.sqrt(2 / math.prod(shape[1:]))
        some = array.array("f", [chance.gauss(0, scale) for _ in range(4099)])
        return (some.tobytes() * (count // len(some) + 1))[:4 * count]
    zeros = name.endswith((".bias", ".running_mean"))
    return array.array("f", [0.0 if zeros else 1.0] * count).tobytes()


def write_folder(house, architecture="resnet18", size=16, name=None, without=(), **config):
    chance = random.Random(7)
    header, data = {}, [b""]
    at = 0

    def add(tensor, dtype, shape, values):
        nonlocal at
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(values)]}
        data.append(values)
        at += len(values)

    for tensor, shape in NETWORKS[architecture](classes=10).items():
        if tensor not in without:
            add(tensor, "F32", shape, values_of(tensor, shape, chance))
    if architecture == "resnet18":
        add("bn1.num_batches_tracked", "I64", [], bytes(8))
    text = json.dumps(header).encode()
    folder = os.path.join(house.data, name or architecture)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architecture": architecture, "num_classes": 10, "pretrained_cfg": {
            "input_size": [3, size, size], "mean": MEAN, "std": DEVIATION, "label_names": ["x"] * 30000}, **config}, f)
