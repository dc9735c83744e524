"""Records PyTorch's training of a U-Net with three foreground classes.

    .deps/venv/bin/python tests/golden/unet3d_classes_golden.py    rewrites unet3d_classes.safetensors

The loss follows its definition: the soft Dice of each class in each sample, plus torch's own
cross-entropy. It equals MONAI's DiceCELoss(include_background=False, to_onehot_y=True,
softmax=True, smooth_nr=1, smooth_dr=1). Everything else is as in unet3d_golden.py
(tests/worker/model/unet3d_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors
from unet3d_golden import BATCH, EXTENT, LEARNING_RATE, MAX_NORM, STEPS, UNet3D

CLASSES = 3


def dice_ce(logits, labels):
    """logits: [B, 1 + CLASSES, D, H, W]; labels: [B, D, H, W], 0 is background."""
    p = torch.softmax(logits, 1)
    losses = []
    for sample in range(len(labels)):
        for c in range(1, CLASSES + 1):
            mask = (labels[sample] == c).float()
            both = (p[sample, c] * mask).sum()
            losses.append(1 - (2 * both + 1) / (p[sample, c].sum() + mask.sum() + 1))
    return torch.stack(losses).mean() + F.cross_entropy(logits, labels)


def main():
    torch.manual_seed(46)  # with this seed no activation is within rounding of a ReLU's zero
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    smooth = F.avg_pool3d(torch.randn(rows, CLASSES, *EXTENT), 3, 1, 1)
    labels = torch.where(smooth.max(1).values > 0.2, smooth.argmax(1) + 1, 0)  # [rows, D, H, W]
    labels[:, :, :, 0] = 0
    labels[0][labels[0] == 2] = 0  # a sample without one of the classes
    volumes = torch.randn(rows, 1, *EXTENT) + labels[:, None].float()
    tensors = {"in.volumes": volumes.expand(-1, 2, -1, -1, -1).permute(0, 2, 3, 4, 1).contiguous().numpy(),
               "in.masks": labels[:, None].float().numpy()}
    run, model = "three_classes", UNet3D(1, 4, 2, 1 + CLASSES)
    floats = {n: p for n, p in model.state_dict().items() if p.is_floating_point()}
    tensors.update({f"{run}.{n}": p.numpy().copy() for n, p in floats.items()})
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(STEPS):
        at = torch.arange(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        loss = dice_ce(model(volumes[at]), labels[at])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        losses.append(loss.item())
    tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
    tensors.update({f"out.{run}.{n}": b.numpy() for n, b in model.named_buffers() if b.is_floating_point()})
    model.eval()
    with torch.no_grad():
        tensors[f"out.{run}.probabilities"] = torch.softmax(model(volumes[:BATCH]), 1).numpy()
    print(run, losses[0], "...", losses[-1], "voxels of each label", torch.bincount(labels.flatten()).tolist())
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "unet3d_classes.safetensors"), tensors)


if __name__ == "__main__":
    main()
