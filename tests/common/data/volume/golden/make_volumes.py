#!/usr/bin/env python3
"""Makes the files that the tests of this folder's parent read, in the folder given (needs numpy
and tifffile): a volume in many forms, and beside each what tifffile or numpy reads of it.

    python3 make_volumes.py .
"""
import os
import sys

import numpy as np
import tifffile


def main(folder):
    def path(name):
        return os.path.join(folder, name)

    def expect(name, array):
        np.save(path(name + ".expected.npy"), np.ascontiguousarray(array).astype("<f4"))

    r = np.random.default_rng(5)
    base = r.integers(0, 200, (4, 10, 12))
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "f4"):
        x = (base * 1.5 - 40.25 if dtype == "f4" else base - (90 if dtype[0] == "i" else 0)).astype("<" + dtype)
        name = f"stack_{dtype}.tif"
        tifffile.imwrite(path(name), x, photometric="minisblack")
        expect(name, tifffile.imread(path(name)))
        np.save(path(f"array_{dtype}.npy"), x)
    u2 = base.astype("<u2")
    tifffile.imwrite(path("big.tif"), u2, bigtiff=True, photometric="minisblack")
    tifffile.imwrite(path("big_endian.tif"), u2, byteorder=">", photometric="minisblack")
    tifffile.imwrite(path("deflated.tif"), u2, compression="zlib", predictor=True, photometric="minisblack")
    tifffile.imwrite(path("tiled.tif"), np.tile(u2, (1, 2, 2)), tile=(16, 16), photometric="minisblack")
    tifffile.imwrite(path("strips.tif"), u2, rowsperstrip=3, photometric="minisblack")
    for name in ("big.tif", "big_endian.tif", "deflated.tif", "tiled.tif", "strips.tif"):
        expect(name, tifffile.imread(path(name)))
    rgb = np.stack([base, base + 1, base + 2], -1).astype("u1")
    tifffile.imwrite(path("channels.tif"), rgb, photometric="rgb", planarconfig="contig")
    expect("channels.tif", tifffile.imread(path("channels.tif")))
    np.save(path("channels.npy"), np.moveaxis(rgb, -1, 0))  # [C, D, H, W]
    np.savez_compressed(path("packed.npz"), volume=base.astype("<f4"))
    expect("packed.npz", base)
    with tifffile.TiffWriter(path("sizes.tif")) as f:
        f.write(u2[0])
        f.write(u2[1][:5])
    np.save(path("fortran.npy"), np.asfortranarray(base.astype("<f4")))
    np.save(path("flat.npy"), base[0].astype("<f4"))
    np.save(path("complex.npy"), base.astype("<c8"))
    nan = base.astype("<f4")
    nan[2, 3, 4] = np.nan
    np.save(path("nan.npy"), nan)
    tifffile.imwrite(path("nan.tif"), nan, photometric="minisblack")
    mask = base > 100
    np.save(path("mask.npy"), mask)
    tifffile.imwrite(path("mask_255.tif"), (mask * 255).astype("u1"), photometric="minisblack")
    np.save(path("mask_mixed.npy"), (mask * 255 + (base == 7)).astype("u1"))
    np.save(path("mask_small.npy"), mask[:, :5])


if __name__ == "__main__":
    main(sys.argv[1])
