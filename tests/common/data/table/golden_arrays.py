#!/usr/bin/env python3
"""Makes the arrays that array_file_test reads, in the folder given (needs numpy).

    python3 golden_arrays.py corpus/arrays
"""
import os
import sys

import numpy as np


def main(folder):
    os.makedirs(folder, exist_ok=True)

    def path(name):
        return os.path.join(folder, name)

    x = np.array([[1.5, -2.25, np.nan], [0.1, 3e38, -0.0], [1e-30, 7, 16777216]])
    for dtype in ("f4", "f8", "i1", "u2", "i8", "u8"):
        whole = dtype[0] != "f"
        np.save(path(f"c_{dtype}.npy"), (np.arange(6).reshape(3, 2) * 20 if whole else x).astype("<" + dtype))
    np.save(path("fortran.npy"), np.asfortranarray(x.astype("<f4")))
    np.save(path("bool.npy"), np.array([True, False]))
    np.save(path("big_endian.npy"), x.astype(">f4"))
    np.save(path("objects.npy"), np.array([[1, "a"]], dtype=object), allow_pickle=True)
    np.save(path("texts.npy"), np.array(["a", "b"]))
    np.save(path("cube.npy"), np.zeros((2, 2, 2), "<f4"))
    np.save(path("half.npy"), np.zeros((2, 2), "<f2"))
    np.savez(path("stored.npz"), x=x.astype("<f4"), y=np.array([3, 1, 2]))
    np.savez_compressed(path("deflated.npz"), x=np.tile(x.astype("<f4"), (50, 1)), y=np.arange(150) % 3)
    np.savez(path("lengths.npz"), x=x, y=np.arange(4))


if __name__ == "__main__":
    main(sys.argv[1])
