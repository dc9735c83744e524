#!/usr/bin/env python3
"""Decodes the same JPEG files with common/data/image and with Pillow, in turn, on one core.

    tests/bench/decode.sh [--python PYTHON] [--rounds 5] [--seconds 2] [--size 224] [--images DIR]

Prints one JSON line with our and the peer's images per second, and their ratio (median over rounds), for three ways:
`whole` decodes RGB pixels, `square` also makes a square of --size from them, and `reduced` does the same after decoding
at a fraction of the size (ours is PREPARE's way, Pillow's is draft()). PYTHON is an interpreter with Pillow or Pillow-SIMD
(`pip install pillow-simd` builds it, in an environment of its own); without one the line says `skipped`. Without --images
the script makes 16 files of 640 x 480 with smooth colour, edges and grain, quality 90.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.abspath(__file__)


def make_images(folder):
    from PIL import Image, ImageChops, ImageDraw, ImageFilter
    for k in range(16):
        small = Image.frombytes("RGB", (12, 9), os.urandom(12 * 9 * 3))
        image = small.resize((640, 480), Image.BICUBIC)
        draw = ImageDraw.Draw(image)
        for i in range(24):
            x, y = (97 * i + 31 * k) % 640, (61 * i + 17 * k) % 480
            draw.polygon([(x, y), (x + 40 + 3 * i, y + 20), (x + 10, y + 60 + 2 * i)], fill=tuple(os.urandom(3)))
        grain = Image.frombytes("L", (640, 480), os.urandom(640 * 480)).filter(ImageFilter.GaussianBlur(1))
        image = ImageChops.add(image, Image.merge("RGB", [grain] * 3), scale=1.4)
        image.save(os.path.join(folder, f"{k:02}.jpg"), quality=90)


def rate(seconds, files, decode):
    import io
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for data in files:
            decode(io.BytesIO(data))
            count += 1
    return count / (time.perf_counter() - begin)


def peer(options, paths):
    """Runs inside PYTHON."""
    from PIL import Image
    files = [open(path, "rb").read() for path in paths]
    size = options.size

    def whole(data):
        image = Image.open(data)
        return (image if image.mode == "RGB" else image.convert("RGB")).load()

    def square(data, reduced=False):
        image = Image.open(data)
        if reduced:
            image.draft("RGB", (2 * size, 2 * size))
        image = image if image.mode == "RGB" else image.convert("RGB")
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        image.resize((size, size), Image.BILINEAR, box=(left, top, left + side, top + side))

    print(json.dumps({"whole": rate(options.seconds, files, whole), "square": rate(options.seconds, files, square),
                      "reduced": rate(options.seconds, files, lambda data: square(data, reduced=True))}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default="python3")
    parser.add_argument("--bench", default="bazel-bin/tests/bench/decode_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--images")
    parser.add_argument("--part", choices=["make", "peer"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "make":
        return make_images(options.images)
    if options.part == "peer":
        return peer(options, sorted(glob.glob(os.path.join(options.images, "*.jpg"))))

    version = subprocess.run([options.python, "-c", "import PIL; print(PIL.__version__)"], capture_output=True, text=True)
    if version.returncode != 0:
        print(json.dumps({"bench": "decode", "skipped": f"{options.python} has no Pillow"}))
        return None
    with tempfile.TemporaryDirectory() as made:
        folder = options.images or made
        again = [options.python, HERE, "--images", folder, "--seconds", str(options.seconds), "--size", str(options.size)]
        if not options.images:
            subprocess.run([*again, "--part", "make"], check=True)
        paths = sorted(glob.glob(os.path.join(folder, "*.jpg")))
        if not paths:
            sys.exit(f"decode.py: no .jpg in {folder}")
        pin = ["taskset", "-c", "0"]
        ours = [*pin, options.bench, "--seconds", str(options.seconds), "--size", str(options.size), *paths]
        rounds = []
        for _ in range(options.rounds):
            rounds.append([json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                           for command in (ours, [*pin, *again, "--part", "peer"])])
    line = {"bench": "decode", "peer": "Pillow " + version.stdout.strip(), "files": len(paths)}
    for way in ("whole", "square", "reduced"):
        line[way] = {"ours_per_s": round(statistics.median(o[way] for o, _ in rounds)),
                     "peer_per_s": round(statistics.median(p[way] for _, p in rounds)),
                     "ratio": round(statistics.median(o[way] / p[way] for o, p in rounds), 3)}
    print(json.dumps(line))
    return None


if __name__ == "__main__":
    sys.exit(main())
