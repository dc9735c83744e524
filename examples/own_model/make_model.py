"""Makes model.pt: a network of your own, for traind to train.

    python3 make_model.py [FILE]        needs PyTorch

forward takes `numeric` (and `codes`, if the data have categorical columns) and returns logits,
one column per class. Weights start with their values in the file. Three of the digits' 64
pixels are the same in all rows, so they are no features and 61 numbers are left.
"""
import sys

import torch
from torch import nn


class Gated(nn.Module):
    """Two layers; the second one gates the output of the first."""

    def __init__(self, numbers: int = 61, classes: int = 10, width: int = 96):
        super().__init__()
        self.norm = nn.BatchNorm1d(numbers, affine=False)
        self.value = nn.Linear(numbers, width)
        self.gate = nn.Linear(numbers, width)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(width, classes)

    def forward(self, numeric):
        x = self.norm(numeric)
        return self.head(self.dropout(self.value(x) * torch.sigmoid(self.gate(x))))


torch.manual_seed(0)
torch.jit.script(Gated()).save(sys.argv[1] if len(sys.argv) > 1 else "model.pt")
