"""Records PyTorch's training of a U-Net with instance norm, and with outputs of lower levels.

    .deps/venv/bin/python tests/golden/unet3d_instance_golden.py    rewrites unet3d_instance.safetensors

The loss of a lower level follows its definition: the mask is brought to the level's extent by
torch's own F.interpolate(mode="nearest"), weights are 1, 1/2, 1/4 divided by their sum. Everything
else is as in unet3d_golden.py (tests/worker/model/unet3d_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors
from unet3d_golden import BATCH, LEARNING_RATE, MAX_NORM, STEPS, UNet3D, dice_bce

EXTENT = (8, 8, 12)
# name: channels, base, levels, deep
RUNS = {"instance": (1, 4, 3, False), "instance_channels": (2, 3, 2, False), "supervised": (1, 4, 3, True)}


def deep_loss(outputs, masks):
    if not isinstance(outputs, list):
        return dice_bce(outputs, masks)
    weights = [0.5 ** k for k in range(len(outputs))]
    losses = [w * dice_bce(o, F.interpolate(masks, size=o.shape[2:], mode="nearest"))
              for w, o in zip(weights, outputs)]
    return sum(losses) / sum(weights)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    masks = (F.avg_pool3d(torch.randn(rows, 1, *EXTENT), 3, 1, 1) > 0.15).float()
    volumes = torch.randn(rows, 2, *EXTENT) + masks  # channels first, as PyTorch has them
    tensors = {"in.volumes": volumes.permute(0, 2, 3, 4, 1).contiguous().numpy(), "in.masks": masks.numpy()}
    for run, (channels, base, levels, deep) in RUNS.items():
        model = UNet3D(channels, base, levels, norm=nn.InstanceNorm3d, deep=deep)
        tensors.update({f"{run}.{n}": p.numpy().copy() for n, p in model.state_dict().items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []
        for step in range(STEPS):
            at = torch.arange(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            loss = deep_loss(model(volumes[at, :channels]), masks[at])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        model.eval()
        with torch.no_grad():
            tensors[f"out.{run}.probabilities"] = torch.sigmoid(model(volumes[:BATCH, :channels])).numpy()
        print(run, losses[0], "...", losses[-1], len(list(model.parameters())), "tensors")
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "unet3d_instance.safetensors"), tensors)


SEED = 26  # with this seed no activation is within rounding of a ReLU's zero

if __name__ == "__main__":
    main()
