"""Answers of several classes, masks, and their scores by numpy alone.

    .deps/venv/bin/python tests/common/data/volume/golden/make_scores.py    rewrites scores_*.npy

scores_values.npy: float32 [cases, voxels, 1 + classes], probabilities; scores_masks.npy: float32
[cases, voxels], 0 to classes; scores_expected.npy: float32 [cases, 2], Dice and IoU: of each class
2|A and B| / (|A| + |B|) and |A and B| / |A or B|, NaN (0/0) where neither has it, then numpy.nanmean,
as nnU-Net's evaluation does it; 1 where all are NaN.
"""
import os
import warnings

import numpy as np

CASES, VOXELS, CLASSES = 12, 60, 3


def main():
    r = np.random.default_rng(5)
    masks = r.integers(0, CLASSES + 1, (CASES, VOXELS))
    logits = r.normal(size=(CASES, VOXELS, CLASSES + 1)) + 2 * np.eye(CLASSES + 1)[masks]
    masks[1][masks[1] == 2] = 0  # predicted, but not in the mask
    masks[2][masks[2] == 3] = 0  # in neither: left out
    logits[2, :, 3] = -9
    masks[3], logits[3, :, 0] = 0, 9  # no foreground at all
    masks[4] = 0  # everything predicted is wrong
    logits[5, :, 0] = 9  # nothing of the mask is predicted
    logits[6, :, 1:3] = logits[6, :, 1:2]  # equal values: the first one counts
    e = np.exp(logits)
    values = (e / e.sum(2, keepdims=True)).astype(np.float32)
    labels = values.argmax(2)
    expected = []
    for case in range(CASES):
        dice, iou = [], []
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore")
            for c in range(1, CLASSES + 1):
                a, b = labels[case] == c, masks[case] == c
                dice.append(np.float64(2 * (a & b).sum()) / (a.sum() + b.sum()))
                iou.append(np.float64((a & b).sum()) / (a | b).sum())
            scores = [np.nanmean(dice), np.nanmean(iou)]
        expected.append([1.0 if np.isnan(s) else s for s in scores])
    here = os.path.dirname(os.path.abspath(__file__))
    for name, array in (("values", values), ("masks", masks), ("expected", expected)):
        np.save(os.path.join(here, f"scores_{name}.npy"), np.asarray(array, np.float32))
    print(np.asarray(expected))


if __name__ == "__main__":
    main()
