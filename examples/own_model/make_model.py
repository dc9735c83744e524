"""Makes model.pt: a network of your own, for traind to train.

    python3 make_model.py [FILE]        needs PyTorch

forward takes `numeric` (and `codes`, if the data have columns of categories) and returns
logits, a column per class. Weights start as they are in the file. Of the digits' 64 pixels
three are the same in all rows: no feature, so 61 numbers are left.
"""
import sys

import torch
from torch import nn


class Gated(nn.Module):
    """Two layers whose second decides how much of the first gets through."""

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
