"""Records PyTorch's training of the engine's U-Net over images, that is, over patches of one slice.

    .deps/venv/bin/python tests/golden/unet2d_golden.py    rewrites tests/golden/unet2d.safetensors

The network, its loss and its loss over several levels are those of unet3d_golden.py and
unet3d_instance_golden.py with torch's modules for images (tests/worker/model/unet3d_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors
from unet3d_golden import BATCH, LEARNING_RATE, MAX_NORM, STEPS, UNet3D
from unet3d_instance_golden import deep_loss

EXTENT = (24, 32)
# name: channels, base, levels, norm, deep
RUNS = {"flat": (2, 4, 3, nn.BatchNorm2d, False), "flat_supervised": (1, 3, 3, nn.InstanceNorm2d, True)}


class UNet2D(UNet3D):
    conv, up_conv, pool = nn.Conv2d, nn.ConvTranspose2d, staticmethod(F.max_pool2d)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    masks = (F.avg_pool2d(torch.randn(rows, 1, *EXTENT), 3, 1, 1) > 0.25).float()
    images = torch.randn(rows, 2, *EXTENT) + masks  # channels first, as PyTorch has them
    tensors = {"in.volumes": images.permute(0, 2, 3, 1).contiguous().numpy(), "in.masks": masks.numpy()}
    for run, (channels, base, levels, norm, deep) in RUNS.items():
        model = UNet2D(channels, base, levels, norm=norm, deep=deep)
        floats = {n: p for n, p in model.state_dict().items() if p.is_floating_point()}
        tensors.update({f"{run}.{n}": p.numpy().copy() for n, p in floats.items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []
        for step in range(STEPS):
            at = torch.arange(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            loss = deep_loss(model(images[at, :channels]), masks[at])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        tensors.update({f"out.{run}.{n}": b.numpy() for n, b in model.named_buffers() if b.is_floating_point()})
        model.eval()
        with torch.no_grad():
            tensors[f"out.{run}.probabilities"] = torch.sigmoid(model(images[:BATCH, :channels])).numpy()
        print(run, losses[0], "...", losses[-1])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "unet2d.safetensors"), tensors)


SEED = 6  # with this seed no activation is within rounding of a ReLU's zero

if __name__ == "__main__":
    main()
