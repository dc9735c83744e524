"""Images for tests: waves of three directions, and a Job that learns them."""
import math
import os
import random
import struct
import zlib

SIZE = 12
CLASSES = ("across", "down", "slanted")


def png(pixels, channels=1):
    """A file of 8-bit pixels: lists of values, one list for each line; grey, or with three channels colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + bytes(line) for line in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(pixels[0]) // channels, len(pixels), 8,
                                                                  {1: 0, 3: 2}[channels], 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def read_png(path):
    """The pixels of a grey file without filters, as png() and traind write them."""
    with open(path, "rb") as f:
        data = f.read()
    width, height, bits, colour = struct.unpack_from(">IIBB", data, 16)
    assert (bits, colour) == (8, 0), (bits, colour)
    packed, at = b"", 8
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    lines = zlib.decompress(packed)
    assert set(lines[::width + 1]) == {0}, "lines have filters"
    return [list(lines[y * (width + 1) + 1:(y + 1) * (width + 1)]) for y in range(height)]


def npy(dtype, shape, values):
    """The bytes of an array, as numpy saves them."""
    codes = {"|u1": "B", "<f4": "f", "<i8": "q"}
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{codes[dtype]}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def grey_array(images, scale=None):
    """An array [N, SIZE, SIZE] of images' pixels: uint8, or float32 where there is a scale."""
    values = [v if scale is None else v / scale for pixels in images for line in pixels for v in line]
    return npy("|u1" if scale is None else "<f4", (len(images), SIZE, SIZE), values)


def stripes(kind, chance):
    """Waves of a direction, begun anywhere: no linear model of pixels tells them apart."""
    begin = chance.uniform(0, 2 * math.pi)
    step = {"across": (0, 1), "down": (1, 0), "slanted": (0.7, 0.7)}[kind]
    return [[int(128 + 80 * math.sin(begin + 1.6 * (x * step[0] + y * step[1])) + chance.uniform(-30, 30))
             for x in range(SIZE)] for y in range(SIZE)]


def write_images(house, each=80, test=60):
    """train/CLASS/N.png and test.csv with test/N.png."""
    chance = random.Random(3)
    for kind in CLASSES:
        os.makedirs(os.path.join(house.data, "train", kind), exist_ok=True)
        for i in range(each):
            house.write(f"train/{kind}/{i}.png", png(stripes(kind, chance)))
    os.makedirs(os.path.join(house.data, "test"), exist_ok=True)
    names = []
    for i in range(test):
        house.write(f"test/{i}.png", png(stripes(CLASSES[i % 3], chance)))
        names.append(f"test/{i}.png,{CLASSES[i % 3]}")
    house.write("test.csv", "file,kind\n" + "\n".join(names) + "\n")


def job_of(train="train", epochs=6, budget="60s", **changes):
    spec = {
        "api": "v1", "name": "stripes", "cache": "off",
        "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": train, "test": "test.csv", "target": "kind", "id": "file", "folds": 2, "seed": 7,
                 "image": {"size": SIZE, "channels": 1}},
        "model": {"cnn": {"width": 8, "blocks": [1, 1]}},
        "train": {"epochs": epochs, "batch": 16, "patience": 0, "learning_rate": 0.005,
                  "augment": {"flip": True, "crop": 0.1, "colour": 0.1}},
        "budget": {"time": budget}}
    spec["train"].update(changes.pop("train_changes", {}))
    spec.update(changes)
    return spec
