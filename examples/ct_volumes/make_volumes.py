#!/usr/bin/env python3
"""Makes the volumes of this example, the same on every machine. They look like a CT of organs
with bright spots; the masks mark the spots.

    python3 make_volumes.py [--volumes 24] [--test 6] [--size 24,48,48] [--classes 1] [--out volumes]

Spots are one unit brighter than their surroundings. The surroundings vary by more than that (a
field goes up and down through each volume, and each volume has its own level), so no single
threshold finds the spots: a model has to use shape and contrast.
With --classes 2 every other spot is one unit darker instead, and has value 2 in the mask.
Writes DIR/<name>.npy (int16) and DIR/<name>_mask.npy (uint8), and train.csv and test.csv beside
DIR. Needs only the standard library.
"""
import argparse
import array
import math
import os
import random
import sys

UNIT = 400  # value of one unit in the files


def ellipsoids(r, shape):
    spots = []
    for _ in range(r.randint(3, 6)):
        radius = [r.uniform(0.09, 0.17) * s + 1.5 for s in shape]
        spots.append(([r.uniform(1.2 * a, s - 1.2 * a) for a, s in zip(radius, shape)], radius))
    return spots


def rows_inside(spots, z, y, width):
    """Returns the parts of spots in the row: the number of each spot and its x range [begin, end)."""
    for i, ((cz, cy, cx), (rz, ry, rx)) in enumerate(spots):
        rest = 1 - ((z - cz) / rz) ** 2 - ((y - cy) / ry) ** 2
        if rest > 0:
            half = rx * math.sqrt(rest)
            yield i, max(0, math.ceil(cx - half)), min(width, math.floor(cx + half) + 1)


def volume(seed, shape, classes=1):
    r = random.Random(seed)
    depth, height, width = shape
    spots = ellipsoids(r, shape)
    level = r.uniform(-0.8, 0.8)

    def wave(size, amplitude):
        turns, phase = r.uniform(0.6, 1.6), r.random()
        return [amplitude * math.sin(2 * math.pi * (i / size * turns + phase)) for i in range(size)]

    by_z, by_y, by_x = wave(depth, 0.8), wave(height, 1.1), wave(width, 1.1)
    noise = [r.gauss(0, 0.4) for _ in range(65536)]
    values, mask = array.array("h"), bytearray(depth * height * width)
    for z in range(depth):
        for y in range(height):
            base, at = level + by_z[z] + by_y[y], r.randrange(65536)
            row = [base + by_x[x] + noise[(at + x) & 65535] for x in range(width)]
            start = (z * height + y) * width
            for spot, begin, end in rows_inside(spots, z, y, width):
                label = spot % classes + 1
                for x in range(begin, end):
                    if not mask[start + x]:
                        mask[start + x] = label
                        row[x] += 1 if label == 1 else -1
            values.extend(int(UNIT * v) for v in row)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes(), bytes(mask)


def write_npy(path, dtype, shape, data):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--volumes", type=int, default=24)
    parser.add_argument("--test", type=int, default=6)
    parser.add_argument("--size", default="24,48,48")
    parser.add_argument("--classes", type=int, default=1, choices=(1, 2))
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "volumes"))
    args = parser.parse_args()
    shape = [int(s) for s in args.size.split(",")]
    os.makedirs(args.out, exist_ok=True)
    above, folder = os.path.split(os.path.abspath(args.out))
    for kind, first, count in (("train", 0, args.volumes), ("test", args.volumes, args.test)):
        lines = ["id,image,mask"]
        for i in range(first, first + count):
            name = f"ct{i:03d}"
            values, mask = volume(i + 1, shape, args.classes)
            write_npy(os.path.join(args.out, name + ".npy"), "<i2", shape, values)
            write_npy(os.path.join(args.out, name + "_mask.npy"), "|u1", shape, mask)
            lines.append(f"{name},{folder}/{name}.npy,{folder}/{name}_mask.npy")
        with open(os.path.join(above, kind + ".csv"), "w") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
