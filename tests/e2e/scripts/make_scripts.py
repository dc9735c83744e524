"""Makes modules that no Job should get far with: endless.pt, wide.pt.

    python3 make_scripts.py        needs PyTorch
"""
import torch
from torch import nn


class Endless(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, numeric):
        x = numeric.sum() * self.weight
        while bool(torch.isfinite(x)):
            x = x * 0.5
        return x


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(61, 11)

    def forward(self, numeric):
        return self.layer(numeric)


torch.manual_seed(0)
torch.jit.script(Endless()).save("endless.pt")
torch.jit.script(Wide()).save("wide.pt")
