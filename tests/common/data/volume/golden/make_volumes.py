#!/usr/bin/env python3
"""Makes the files that the tests of this folder's parent read, in the folder given (needs numpy
tifffile and nibabel): a volume in many forms, and beside each what tifffile, nibabel or numpy reads of it.

    python3 make_volumes.py .
"""
import os
import sys

import nibabel as nib
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
    affine = np.array([[-0.5, 0.1, 0, 7], [0.1, 0.5, 0, -3.5], [0, 0, 2.5, 11.25], [0, 0, 0, 1]])

    def nifti(name, x, kind=nib.Nifti1Image, change=None, header=None):
        """x: [D, H, W] or [C, D, H, W]."""
        image = kind(x.T if x.ndim == 3 else np.moveaxis(x, 0, 3).transpose(2, 1, 0, 3), affine, header, dtype=x.dtype)
        if change is not None:
            change(image.header)
        nib.save(image, path(name))
        read = np.asarray(nib.load(path(name)).dataobj)
        expect(name, read.T if read.ndim == 3 else read.transpose(2, 1, 0, 3))

    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "i8", "f4", "f8"):
        nifti(f"array_{dtype}.nii", np.load(path(f"array_{dtype}.npy" if dtype[1] != "8" else "array_i4.npy")).astype(dtype))
    nifti("packed.nii.gz", u2)
    nifti("two.nii.gz", u2, nib.Nifti2Image)
    nifti("channels.nii.gz", np.moveaxis(rgb, -1, 0))
    nifti("swapped.nii", u2.astype(">u2"), header=nib.Nifti1Header(endianness=">"))
    nifti("scaled.nii.gz", (base - 90).astype("i2"), change=lambda h: h.set_slope_inter(0.25, -3))
    nib.save(nib.Nifti1Image(u2.T.astype("c8"), affine), path("complex.nii"))
    nib.save(nib.Nifti1Pair(u2.T, affine), path("pair.hdr"))
    os.remove(path("pair.img"))
    mask = base > 100
    # Only the header's fields of the volume's place in the room are compared with it.
    nib.save(nib.Nifti1Image(mask.T.astype("u1"), affine), path("mask.nii"))
    np.save(path("mask.npy"), mask)
    tifffile.imwrite(path("mask_255.tif"), (mask * 255).astype("u1"), photometric="minisblack")
    np.save(path("mask_mixed.npy"), (mask * 255 + (base == 7)).astype("u1"))
    np.save(path("mask_small.npy"), mask[:, :5])


if __name__ == "__main__":
    main(sys.argv[1])
