"""Small image files, and what Pillow decodes them to.

    python3 tests/common/data/image/golden/make_images.py    rewrites the files beside it; wants Pillow and numpy

NAME.png or NAME.jpg, NAME.ppm with its pixels as RGB, NAME.pgm as grey, and NAME.12.ppm: the
square in the middle as 12 x 12 by Pillow's bilinear filter (tests/common/data/image/decode_test.cc).
"""
import os
import struct
import zlib

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))


def picture(height, width, seed):
    """Smooth shapes with some noise, [height, width, 3]."""
    y, x = np.mgrid[0:height, 0:width] / 8.0
    waves = np.stack([np.sin(x + seed), np.cos(y * 1.3 - x), np.sin(x * y / 3)], -1) * 100 + 128
    return np.clip(waves + np.random.default_rng(seed).normal(0, 6, waves.shape), 0, 255).astype(np.uint8)


def deep_png(path, pixels):
    """16 bits a channel, which Pillow does not write. pixels: [height, width, 3] uint16."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in pixels)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def main():
    rgb = Image.fromarray(picture(19, 26, 1))
    square = Image.fromarray(picture(8, 8, 2))
    alpha = rgb.copy()
    alpha.putalpha(Image.fromarray(picture(19, 26, 3)[:, :, 0]))
    files = {
        "rgb.png": (rgb, {}), "grey.png": (rgb.convert("L"), {}), "palette.png": (rgb.quantize(7), {}),
        "see_through.png": (rgb.quantize(7), {"transparency": 2}), "alpha.png": (alpha, {}),
        "grey_alpha.png": (alpha.convert("LA"), {}), "bits.png": (rgb.convert("1"), {}), "small.png": (square, {}),
        "colour.jpg": (rgb, {"quality": 90, "subsampling": 0}), "halved.jpg": (rgb, {"quality": 75, "subsampling": 2}),
        "grey.jpg": (rgb.convert("L"), {"quality": 80}), "progressive.jpg": (rgb, {"progressive": True}),
        "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 90}), "large.jpg": (Image.fromarray(picture(100, 120, 4)), {}),
    }
    for name, (image, options) in files.items():
        image.save(os.path.join(HERE, name), **options)
    deep_png(os.path.join(HERE, "deep.png"), np.random.default_rng(5).integers(0, 65536, (9, 7, 3)))
    for name in sorted(list(files) + ["deep.png"]):
        image = Image.open(os.path.join(HERE, name))
        stem = os.path.join(HERE, name)
        colour = image.convert("RGB")
        if colour.height < 100:
            colour.save(stem + ".ppm")
            colour.convert("L").save(stem + ".pgm")
        side = min(colour.size)
        left, top = (colour.width - side) // 2, (colour.height - side) // 2
        colour.resize((12, 12), Image.BILINEAR, (left, top, left + side, top + side)).save(stem + ".12.ppm")


if __name__ == "__main__":
    main()
