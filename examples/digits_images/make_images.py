#!/usr/bin/env python3
"""Writes the digits of examples/digits as PNG images.

    make_images.py [FOLDER]    # default: images/ beside this file; needs only Python

The folder gets train/DIGIT/ID.png, with a folder per class, test/ID.png, and test.csv with the names and
digits of the test images.
"""
import csv
import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent


def png(width, height, grey):
    """Encodes 8-bit grey pixels, given row by row, as a PNG file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + bytes(grey[y * width:(y + 1) * width]) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def rows(name):
    """Yields (id, digit, 64 bytes) for each row."""
    with open(HERE.parent / "digits" / name, newline="") as f:
        for row in csv.DictReader(f):
            yield int(row["id"]), row["digit"], [int(row[f"p{i:02}"]) * 255 // 16 for i in range(64)]


def write(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(8, 8, pixels))


def main(folder):
    for number, digit, pixels in rows("train.csv"):
        write(folder / "train" / digit / f"{number:04}.png", pixels)
    names = []
    for number, digit, pixels in rows("test.csv"):
        names.append((f"test/{number:04}.png", digit))
        write(folder / names[-1][0], pixels)
    with open(folder / "test.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["file", "digit"])
        writer.writerows(names)
    print(f"{folder}: images to learn from in train/, {len(names)} to predict in test.csv")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "images")
