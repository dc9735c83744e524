"""Records PyTorch's training of the engine's residual CNN over small images.

    .deps/venv/bin/python tests/golden/cnn_golden.py    rewrites tests/golden/cnn.safetensors

The file has weights, images, the loss of each step and the running statistics after the last
step (tests/worker/model/cnn_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors

STEPS, BATCH, SIZE, NUMERIC = 20, 8, 9, 2
CARDINALITIES = [5]
LEARNING_RATE, MAX_NORM = 1e-3, 5.0


class Unit(nn.Module):
    """A convolution and its batch norm."""

    def __init__(self, inside, outside, size, stride):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, size, stride, size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outside)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)  # 1 and 0 would hide swapped parameters
        nn.init.normal_(self.norm.bias, 0.0, 0.2)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first, self.second = Unit(inside, outside, 3, stride), Unit(outside, outside, 3, 1)
        self.shortcut = Unit(inside, outside, 1, stride) if stride > 1 or inside != outside else None

    def forward(self, x):
        past = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.second(F.relu(self.first(x))) + past)


class Cnn(nn.Module):
    def __init__(self, channels, width, blocks, cardinalities, numeric, outputs):
        super().__init__()
        widths = [max(1, min(50, (c + 1) // 2)) for c in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, w) for c, w in zip(cardinalities, widths))
        self.stem = Unit(channels, width, 3, 1)
        self.stages = nn.ModuleList()
        inside = width
        for stage, count in enumerate(blocks):
            outside = width * 2 ** stage
            self.stages.append(nn.ModuleList(
                Block(inside if i == 0 else outside, outside, 2 if i == 0 and stage > 0 else 1) for i in range(count)))
            inside = outside
        self.head = nn.Linear(inside + numeric + sum(widths), outputs)

    def forward(self, image, numeric, codes):
        x = F.relu(self.stem(image))
        for stage in self.stages:
            for block in stage:
                x = block(x)
        columns = [numeric] + [e(codes[:, i]) for i, e in enumerate(self.embeddings)]
        return self.head(torch.cat([x.mean((2, 3))] + columns, 1))


# name: channels, width, blocks, with columns, outputs, classes
RUNS = {
    "colour": (3, 8, [1, 2, 1], True, 3, True),
    "grey": (1, 6, [1, 1], False, 2, False),
}


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    numeric = torch.randn(rows, NUMERIC)
    codes = torch.stack([torch.randint(0, c, (rows,)) for c in CARDINALITIES], 1)
    classes = torch.randint(0, 3, (rows,))
    shift = (classes.float() - 1)[:, None, None, None]
    images = torch.randn(rows, SIZE, SIZE, 3) + shift * torch.linspace(-1, 1, SIZE)[:, None]
    values = torch.stack([images.mean((1, 2, 3)) * 5, images[:, 0, :, 0].mean(1)], 1) + 0.1 * torch.randn(rows, 2)
    tensors = {"in.images": images, "in.numeric": numeric, "in.codes": codes, "in.classes": classes, "in.values": values}
    tensors = {name: t.numpy() for name, t in tensors.items()}
    for run, (channels, width, blocks, columns, outputs, classify) in RUNS.items():
        model = Cnn(channels, width, blocks, CARDINALITIES if columns else [], NUMERIC if columns else 0, outputs)
        floats = {n: p for n, p in model.state_dict().items() if p.is_floating_point()}
        tensors.update({f"{run}.{n}": p.numpy().copy() for n, p in floats.items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []

        def forward(at):
            x = images[at, :, :, :channels].permute(0, 3, 1, 2)
            return model(x, numeric[at] if columns else numeric[at][:, :0], codes[at] if columns else None)

        for step in range(STEPS):
            at = torch.arange(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            output = forward(at)
            loss = F.cross_entropy(output, classes[at]) if classify else F.mse_loss(output, values[at])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        tensors.update({f"out.{run}.{n}": b.numpy() for n, b in model.named_buffers() if b.is_floating_point()})
        model.eval()
        with torch.no_grad():
            output = forward(torch.arange(BATCH))
            tensors[f"out.{run}.predictions"] = (output.softmax(1) if classify else output).numpy()
        print(run, losses[0], "...", losses[-1])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "cnn.safetensors"), tensors)


if __name__ == "__main__":
    main()
