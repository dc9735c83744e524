"""Volumes of other orientations, and what nibabel's as_closest_canonical makes of them.

    python3 make_orientations.py .    (needs numpy and nibabel)

turned_<codes>.nii(.gz): files whose axes run to these sides, and beside each the canonical volume as
[D, H, W(, C)]. orientations_sform.npy: float32, a row per affine: its 12 numbers, then for x, y and z of the
file the axis of the room (0: right) and 1, or -1 if it runs the other way. orientations_qform.npy: pixdim[0..3],
quatern_b, c, d, and the same.
"""
import os
import sys

import nibabel as nib
import numpy as np
from nibabel.orientations import axcodes2ornt, inv_ornt_aff, io_orientation, ornt_transform


def main(folder):
    r = np.random.default_rng(3)

    def path(name):
        return os.path.join(folder, name)

    def affine_of(codes, spacing, shape, tilt=0.0):
        """Of a file with these codes; `tilt` turns it out of the axes of the room."""
        to_ras = inv_ornt_aff(ornt_transform(axcodes2ornt("RAS"), axcodes2ornt(codes)), shape)
        turn = np.eye(4)
        turn[:3, :3] = [[np.cos(tilt), -np.sin(tilt), 0], [np.sin(tilt), np.cos(tilt), 0], [0, 0, 1]]
        return turn @ np.diag(list(spacing) + [1]) @ to_ras

    base = r.integers(0, 200, (4, 5, 6)).astype("<i2")  # R, A, S
    for codes, ending, channels in (("LPS", "nii.gz", 1), ("LAS", "nii", 1), ("RAI", "nii.gz", 1), ("PSR", "nii.gz", 1),
                                    ("ILA", "nii", 1), ("SPL", "nii.gz", 2), ("ASR", "nii.gz", 1)):
        ornt = ornt_transform(axcodes2ornt("RAS"), axcodes2ornt(codes))
        data = base if channels == 1 else np.stack([base, 3 * base], -1)
        file = nib.orientations.apply_orientation(data, ornt)
        image = nib.Nifti1Image(file, affine_of(codes, (1, 2, 3), base.shape, tilt=0.3), dtype="i2")
        name = f"turned_{codes}.{ending}"
        nib.save(image, path(name))
        assert "".join(nib.aff2axcodes(nib.load(path(name)).affine)) == codes
        canonical = np.asarray(nib.as_closest_canonical(nib.load(path(name))).dataobj)
        assert (canonical == data).all(), codes
        np.save(path(name + ".expected.npy"), np.ascontiguousarray(np.moveaxis(canonical, (0, 1, 2), (2, 1, 0)), "<f4"))

    def columns(affine):
        return [value for axis, sign in io_orientation(affine) for value in (axis, sign)]

    rows = []
    for i in range(300):
        turn, _ = np.linalg.qr(r.normal(size=(3, 3)))
        if i % 3 == 0:
            turn = turn + 0.4 * r.normal(size=(3, 3))  # sheared
        if i % 3 == 1:
            turn = np.eye(3)[r.permutation(3)] * r.choice([-1, 1], 3) + 0.05 * r.normal(size=(3, 3))
        affine = np.eye(4)
        affine[:3, :3] = turn * r.uniform(0.3, 4, 3)
        affine[:3, 3] = r.normal(size=3) * 50
        affine = affine.astype("f4")
        rows.append(list(affine[:3].ravel()) + columns(affine.astype("f8")))
    np.save(path("orientations_sform.npy"), np.array(rows, "f4"))
    rows = []
    for i in range(200):
        turn, _ = np.linalg.qr(r.normal(size=(3, 3)))
        if i % 2:
            turn = np.eye(3)[r.permutation(3)] * r.choice([-1, 1], 3)
        affine = np.eye(4)
        affine[:3, :3] = turn * r.uniform(0.3, 4, 3)
        header = nib.Nifti1Header()
        header.set_qform(affine, 1)
        fields = [float(v) for v in header["pixdim"][:4]] + [float(header[f"quatern_{k}"]) for k in "bcd"]
        rows.append(fields + columns(header.get_qform()))
    np.save(path("orientations_qform.npy"), np.array(rows, "f4"))
    # A pair, with the same voxels as array_i2.nii.
    data = np.asarray(nib.load(path("array_i2.nii")).dataobj)
    nib.save(nib.Nifti1Pair(data, nib.load(path("array_i2.nii")).affine, dtype="i2"), path("both.hdr"))
    nib.save(nib.Nifti2Pair(data, np.eye(4), dtype="i2"), path("both2.hdr"))
    nib.save(nib.AnalyzeImage(data.astype("i2"), np.eye(4)), path("analyze.hdr"))
    os.remove(path("analyze.img"))


if __name__ == "__main__":
    main(sys.argv[1])
