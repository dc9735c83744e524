"""Records PyTorch's training of the engine's U-Net over patches of volumes.

    .deps/venv/bin/python tests/golden/unet3d_golden.py    rewrites tests/golden/unet3d.safetensors

The file has weights, patches, masks, the loss of each step, the running statistics after the
last step and the output for the first batch (tests/worker/model/unet3d_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors

STEPS, BATCH, EXTENT = 20, 2, (8, 8, 12)
LEARNING_RATE, MAX_NORM = 1e-3, 5.0


class UNet3D(nn.Module):
    conv, up_conv, pool = nn.Conv3d, nn.ConvTranspose3d, staticmethod(F.max_pool3d)

    def __init__(self, channels, base, levels, outputs=1, norm=nn.BatchNorm3d, deep=False):
        super().__init__()
        conv = self.conv

        def block(i, o):
            return nn.Sequential(conv(i, o, 3, padding=1, bias=False), norm(o, affine=True), nn.ReLU(),
                                 conv(o, o, 3, padding=1, bias=False), norm(o, affine=True), nn.ReLU())
        ch = [base * 2 ** k for k in range(levels)]
        self.down = nn.ModuleList([block(channels if k == 0 else ch[k - 1], ch[k]) for k in range(levels)])
        self.up = nn.ModuleList([self.up_conv(ch[k + 1], ch[k], 2, stride=2) for k in range(levels - 1)])
        self.dec = nn.ModuleList([block(2 * ch[k], ch[k]) for k in range(levels - 1)])
        self.out = conv(base, outputs, 1)
        if deep:  # an output of each further level on the way up
            self.deep = nn.ModuleDict({str(k): conv(ch[k], outputs, 1) for k in range(1, levels - 1)})
        for m in self.modules():
            if isinstance(m, norm):  # 1 and 0 would hide swapped parameters
                nn.init.uniform_(m.weight, 0.5, 1.5)
                nn.init.normal_(m.bias, 0.0, 0.2)

    def forward(self, x):
        s = []
        for k, b in enumerate(self.down):
            x = b(x if k == 0 else self.pool(x, 2))
            s.append(x)
        deep = []
        for k in range(len(self.up) - 1, -1, -1):
            x = self.dec[k](torch.cat([self.up[k](x), s[k]], 1))
            if k > 0 and self.training and hasattr(self, "deep"):
                deep.insert(0, self.deep[str(k)](x))
        return [self.out(x), *deep] if deep else self.out(x)


def dice_bce(logit, m):
    p = torch.sigmoid(logit)
    d = tuple(range(1, logit.dim()))
    dice = 1 - ((2 * (p * m).sum(d) + 1) / (p.sum(d) + m.sum(d) + 1)).mean()
    return dice + F.binary_cross_entropy_with_logits(logit, m)


# name: channels, base, levels
RUNS = {"three_levels": (1, 4, 3), "channels": (2, 3, 2)}


def main():
    torch.manual_seed(23)  # with this seed no activation is within rounding of a ReLU's zero
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    masks = (F.avg_pool3d(torch.randn(rows, 1, *EXTENT), 3, 1, 1) > 0.15).float()
    volumes = torch.randn(rows, 2, *EXTENT) + masks  # channels first, as PyTorch has them
    tensors = {"in.volumes": volumes.permute(0, 2, 3, 4, 1).contiguous().numpy(), "in.masks": masks.numpy()}
    for run, (channels, base, levels) in RUNS.items():
        model = UNet3D(channels, base, levels)
        floats = {n: p for n, p in model.state_dict().items() if p.is_floating_point()}
        tensors.update({f"{run}.{n}": p.numpy().copy() for n, p in floats.items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []
        for step in range(STEPS):
            at = torch.arange(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            loss = dice_bce(model(volumes[at, :channels]), masks[at])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        tensors.update({f"out.{run}.{n}": b.numpy() for n, b in model.named_buffers() if b.is_floating_point()})
        model.eval()
        with torch.no_grad():
            tensors[f"out.{run}.probabilities"] = torch.sigmoid(model(volumes[:BATCH, :channels])).numpy()
        print(run, losses[0], "...", losses[-1])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "unet3d.safetensors"), tensors)


if __name__ == "__main__":
    main()
