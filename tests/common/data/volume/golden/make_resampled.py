"""Volumes and masks on other grids, by torch and by scipy.

    .deps/venv/bin/python tests/common/data/volume/golden/make_resampled.py    rewrites resampled_*.npy

It needs scipy, too (PYTHONPATH). resampled_values.npy: float32 [5, 7, 6, 2], values; resampled_labels.npy:
float32 [5, 7, 6], 0 to 3. For each of the grids below, resampled_values_<i>.npy has the values by
torch.nn.functional.interpolate (trilinear, align_corners=False), and resampled_labels_<i>.npy the labels
by its nearest-exact mode. scipy.ndimage.zoom (grid_mode, mode nearest, orders 1 and 0) has to agree.
"""
import os

import numpy as np
import torch
from scipy import ndimage

SHAPE = (5, 7, 6)
GRIDS = ((9, 11, 13), (2, 3, 4), (5, 4, 17), (1, 7, 6), (12, 1, 1))


def zoomed(array, grid, order):
    factors = [to / of for to, of in zip(grid, SHAPE)]
    return ndimage.zoom(array, factors, order=order, grid_mode=True, mode="nearest")


def main():
    r = np.random.default_rng(11)
    values = r.normal(size=SHAPE + (2,)).astype(np.float32)
    labels = r.integers(0, 4, SHAPE).astype(np.float32)
    here = os.path.dirname(os.path.abspath(__file__))

    def save(name, array):
        np.save(os.path.join(here, f"resampled_{name}.npy"), np.ascontiguousarray(array, np.float32))

    save("values", values)
    save("labels", labels)
    for i, grid in enumerate(GRIDS):
        linear = torch.nn.functional.interpolate(
            torch.from_numpy(values).permute(3, 0, 1, 2)[None], grid, mode="trilinear", align_corners=False)
        linear = linear[0].permute(1, 2, 3, 0).numpy()
        nearest = torch.nn.functional.interpolate(torch.from_numpy(labels)[None, None], grid, mode="nearest-exact")
        nearest = nearest[0, 0].numpy()
        by_scipy = np.stack([zoomed(values[..., c], grid, 1) for c in range(2)], -1)
        assert by_scipy.shape == linear.shape and np.abs(by_scipy - linear).max() < 1e-5, grid
        assert (zoomed(labels, grid, 0) == nearest).mean() > 0.999, (grid, (zoomed(labels, grid, 0) != nearest).sum())
        save(f"values_{i}", linear)
        save(f"labels_{i}", nearest)


if __name__ == "__main__":
    main()
