"""Volumes on coarser grids, by skimage.

    python3 make_blurred.py .    (needs numpy, scipy and scikit-image)

blurred_<i>.npy: resampled_values.npy (make_resampled.py) on the i-th of the grids below, by skimage.transform.resize
(order 1, mode edge, anti_aliasing=True), for each channel.
"""
import os
import sys

import numpy as np
from skimage.transform import resize

GRIDS = ((2, 3, 4), (5, 4, 17), (1, 7, 6), (12, 1, 1), (3, 7, 2))


def main(folder):
    values = np.load(os.path.join(folder, "resampled_values.npy")).astype("f8")
    for i, grid in enumerate(GRIDS):
        channels = [resize(values[..., c], grid, order=1, mode="edge", anti_aliasing=True, preserve_range=True)
                    for c in range(values.shape[-1])]
        np.save(os.path.join(folder, f"blurred_{i}.npy"), np.ascontiguousarray(np.stack(channels, -1), "<f4"))


if __name__ == "__main__":
    main(sys.argv[1])
