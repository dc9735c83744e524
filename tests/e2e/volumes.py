"""Volumes with bright spots, and specs of Jobs that learn them."""
import ast
import glob
import gzip
import os
import struct
import subprocess
import sys

SHAPE = (8, 16, 16)


def make_volumes(house, volumes=8, test=2, classes=1):
    script = os.path.join("examples", "ct_volumes", "make_volumes.py")
    subprocess.run([sys.executable, script, "--volumes", str(volumes), "--test", str(test), "--size",
                    ",".join(map(str, SHAPE)), "--classes", str(classes), "--out", os.path.join(house.data, "volumes")], check=True)


def spec(house, **changes):
    job = {
        "api": "v1", "name": "spots", "cache": "off",
        "task": {"type": "segmentation"},
        "data": {"train": "train.csv", "test": "test.csv", "id": "id", "folds": 2, "seed": 7, "volume": {}},
        "model": {"unet3d": {"base": 4, "levels": 2}},
        "train": {"epochs": 14, "batch": 1, "accumulation": 2, "patience": 0, "learning_rate": 0.005,
                  "precision": "fp32", "patches": {"size": [8, 16, 16], "per_volume": 12},
                  "checkpoint_every": "300ms"},
        "resources": {"slots": 2},
        "budget": {"time": "90s"},
    }
    return {**job, **changes}


def npy(data):
    """Header and bytes of an NPY file, without numpy."""
    assert data[:6] == b"\x93NUMPY", data[:6]
    size = struct.unpack("<H", data[8:10])[0]
    return ast.literal_eval(data[10:10 + size].decode()), data[10 + size:]


SPACING, SROW = (0.75, 0.5, 2.5), (0.75, 0, 0, 7, 0, 0.5, 0, -3, 0, 0, 2.5, 11)


def as_nifti(house, deeper=()):
    """Every array of the volumes' folder becomes a NIfTI file, and the tables name those. The slices of the volumes
    `deeper` are twice as far apart."""
    folder = os.path.join(house.data, "volumes")
    kinds = {"|u1": (2, 8), "<f4": (16, 32), "<i2": (4, 16)}
    for path in glob.glob(os.path.join(folder, "*.npy")):
        with open(path, "rb") as f:
            header, values = npy(f.read())
        depth, height, width = header["shape"]
        nifti = bytearray(352)
        struct.pack_into("<i", nifti, 0, 348)
        struct.pack_into("<8h", nifti, 40, 3, width, height, depth, 1, 1, 1, 1)
        struct.pack_into("<2h", nifti, 70, *kinds[header["descr"]])
        deep = os.path.basename(path)[:5] in deeper
        struct.pack_into("<4f", nifti, 76, 1, *SPACING[:2], SPACING[2] * (2 if deep else 1))
        struct.pack_into("<f", nifti, 108, 352)
        struct.pack_into("<2h", nifti, 252, 0, 1)
        struct.pack_into("<12f", nifti, 280, *SROW)
        nifti[344:348] = b"n+1\0"
        with gzip.open(path[:-len(".npy")] + ".nii.gz", "wb") as f:
            f.write(bytes(nifti) + values)
        os.remove(path)
    for table in ("train.csv", "test.csv"):
        with open(os.path.join(house.data, table), encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(house.data, table), "w", encoding="utf-8") as f:
            f.write(text.replace(".npy", ".nii.gz"))


def turned_back(nifti):
    """The voxels of a file that `turn` has made, in the order of the file that it was."""
    (height, depth, width), size = struct.unpack_from("<3h", nifti, 42), struct.unpack_from("<h", nifti, 72)[0] // 8
    voxels, before = nifti[352:], bytearray(len(nifti) - 352)
    for x in range(width):
        for z in range(depth):
            for y in range(height):
                to, at = ((z * height + y) * width + x) * size, ((x * depth + z) * height + height - 1 - y) * size
                before[to:to + size] = voxels[at:at + size]
    return bytes(before)


def turn(house, ids):
    """The files of these volumes and of their masks get other axes, and headers that say so: theirs are y backwards, z,
    and x."""
    for name in ids:
        for path in glob.glob(os.path.join(house.data, "volumes", name + "*.nii.gz")):
            with gzip.open(path) as f:
                nifti = bytearray(f.read())
            width, height, depth = struct.unpack_from("<3h", nifti, 42)
            size = struct.unpack_from("<h", nifti, 72)[0] // 8
            voxels = bytearray()
            for x in range(width):
                for z in range(depth):
                    for y in reversed(range(height)):
                        at = 352 + ((z * height + y) * width + x) * size
                        voxels += nifti[at:at + size]
            struct.pack_into("<3h", nifti, 42, height, depth, width)
            dx, dy, dz = struct.unpack_from("<3f", nifti, 80)
            struct.pack_into("<3f", nifti, 80, dy, dz, dx)
            for row in range(3):
                to_x, to_y, to_z, begin = struct.unpack_from("<4f", nifti, 280 + 16 * row)
                struct.pack_into("<4f", nifti, 280 + 16 * row, -to_y, to_z, to_x, begin + to_y * (height - 1))
            with gzip.open(path, "wb") as f:
                f.write(bytes(nifti[:352]) + voxels)
