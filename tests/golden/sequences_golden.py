"""Records PyTorch's training of the engine's LSTM and Transformer encoder over windows of a series.

    .deps/venv/bin/python tests/golden/sequences_golden.py    rewrites tests/golden/sequences.safetensors

The file has weights, rows and the loss of each step (tests/worker/model/sequences_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors

STEPS, BATCH, NUMERIC, WINDOW, HORIZON = 20, 16, 5, 7, 2
CARDINALITIES = [6, 9]
LEARNING_RATE, MAX_NORM = 3e-3, 5.0


class Columns(nn.Module):
    def __init__(self, cardinalities):
        super().__init__()
        self.widths = [max(1, min(50, (c + 1) // 2)) for c in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, w) for c, w in zip(cardinalities, self.widths))

    def concatenate(self, numeric, codes):
        return torch.cat([numeric] + [e(codes[..., i]) for i, e in enumerate(self.embeddings)], -1)


class Lstm(Columns):
    def __init__(self, cardinalities, window, outputs):
        super().__init__(cardinalities)
        self.lstm = nn.LSTM(NUMERIC + sum(self.widths), 12, 2, batch_first=True)
        self.head = nn.Linear(12, outputs)

    def forward(self, numeric, codes):
        return self.head(self.lstm(self.concatenate(numeric, codes))[0][:, -1])


class Transformer(Columns):
    def __init__(self, cardinalities, window, outputs, pre_norm, mean):
        super().__init__(cardinalities)
        self.mean = mean
        self.input = nn.Linear(NUMERIC + sum(self.widths), 16)
        self.position = nn.Parameter(torch.randn(window, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0, batch_first=True, norm_first=pre_norm)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16) if pre_norm else None,
                                             enable_nested_tensor=False)
        self.head = nn.Linear(16, outputs)
        for p in self.encoder.parameters():  # equal layers, and norms of 1 and 0, would hide swapped parameters
            nn.init.normal_(p, 0.0, 0.3) if p.dim() > 1 else nn.init.uniform_(p, 0.5, 1.0)

    def forward(self, numeric, codes):
        x = self.encoder(self.input(self.concatenate(numeric, codes)) + self.position)
        return self.head(x.mean(1) if self.mean else x[:, -1])


# name: model of (cardinalities, window, outputs), window, outputs, classes
RUNS = {
    "lstm": (Lstm, WINDOW, 2, False),
    "lstm_row": (Lstm, 1, 3, True),
    "post_norm": (lambda *a: Transformer(*a, False, False), WINDOW, 2, False),
    "pre_norm": (lambda *a: Transformer(*a, True, False), WINDOW, 1, False),
    "mean_pooling": (lambda *a: Transformer(*a, True, True), WINDOW, 3, True),
    "transformer_row": (lambda *a: Transformer(*a, False, False), 1, 1, False),
}


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    context = WINDOW - 1 + HORIZON
    rows = STEPS * BATCH + context
    numeric = torch.randn(rows, NUMERIC)
    codes = torch.stack([torch.randint(0, c, (rows,)) for c in CARDINALITIES], 1)
    values = torch.stack([numeric[:, :3].sum(1), numeric[:, 3], codes[:, 0] - 2.5], 1) + 0.1 * torch.randn(rows, 3)
    classes = torch.randint(0, 3, (rows,))
    tensors = {"in.numeric": numeric, "in.codes": codes, "in.values": values, "in.classes": classes}
    tensors = {name: t.numpy() for name, t in tensors.items()}
    for run, (build, window, outputs, classify) in RUNS.items():
        horizon = HORIZON if window > 1 else 0
        model = build(CARDINALITIES, window, outputs)
        tensors.update({f"{run}.{n}": p.detach().numpy().copy() for n, p in model.named_parameters()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []

        def batch(step):
            at = torch.arange(context + step * BATCH, context + (step + 1) * BATCH)
            past = at[:, None] - horizon - window + 1 + torch.arange(window)
            return at, numeric[past], codes[past]

        for step in range(STEPS):
            at, x, c = batch(step)
            optimizer.zero_grad()
            output = model(x, c)
            loss = F.cross_entropy(output, classes[at]) if classify else F.mse_loss(output, values[at][:, :outputs])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        with torch.no_grad():
            _, x, c = batch(0)
            output = model(x, c)
            tensors[f"out.{run}.predictions"] = (output.softmax(1) if classify else output).numpy()
        print(run, losses[0], "...", losses[-1])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "sequences.safetensors"), tensors)


if __name__ == "__main__":
    main()
