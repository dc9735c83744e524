"""Records PyTorch's training of the engine's MLP: weights, batches and the loss of each step.

    .deps/venv/bin/python tests/golden/mlp_golden.py       rewrites tests/golden/*.safetensors

The engine's tests start from the same weights, take the same batches and must reach the
same losses (tests/worker/learner/learner_test.cc).
"""
import json
import math
import os
import struct

import numpy as np
import torch
from torch import nn

STEPS, BATCH = 20, 32
LEARNING_RATE, WEIGHT_DECAY, MAX_NORM = 3e-3, 0.01, 5.0


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        dtype = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Mlp(nn.Module):
    def __init__(self, numeric, cardinalities, hidden, outputs):
        super().__init__()
        widths = [max(1, min(50, (c + 1) // 2)) for c in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, w) for c, w in zip(cardinalities, widths))
        sizes = [numeric + sum(widths)] + hidden + [outputs]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, numeric, codes):
        x = torch.cat([numeric] + [e(codes[:, i]) for i, e in enumerate(self.embeddings)], 1)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Ensemble(nn.Module):
    """TabM-mini on numbers that are embedded by periodic functions (PBLD) or go in as they are."""

    def __init__(self, numeric, cardinalities, hidden, outputs, members, periodic):
        super().__init__()
        widths = [max(1, min(50, (c + 1) // 2)) for c in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, w) for c, w in zip(cardinalities, widths))
        self.numbers, size = nn.ParameterDict(), 1
        if periodic:
            frequencies, size, scale = periodic
            within = frequencies ** -0.5
            self.numbers["frequencies"] = torch.randn(numeric, 1, frequencies) * scale
            self.numbers["phases"] = torch.empty(numeric, 1, frequencies).uniform_(-math.pi, math.pi)
            self.numbers["weight"] = torch.empty(numeric, frequencies, size - 1).uniform_(-within, within)
            self.numbers["bias"] = torch.empty(numeric, 1, size - 1).uniform_(-within, within)
        sizes = [numeric * size + sum(widths)] + hidden
        self.factors = nn.Parameter(torch.randn(members, sizes[0]))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        within = sizes[-1] ** -0.5
        self.heads = nn.ParameterDict({"weight": torch.empty(members, sizes[-1], outputs).uniform_(-within, within),
                                       "bias": torch.empty(members, 1, outputs).uniform_(-within, within)})

    def embed(self, x):
        if not self.numbers:
            return x
        n = self.numbers
        waves = torch.cos(2 * math.pi * x[:, :, None] * n["frequencies"][:, 0] + n["phases"][:, 0])
        learnt = torch.einsum("bcf,cfs->bcs", waves, n["weight"]) + n["bias"][:, 0]
        return torch.cat([x[:, :, None], learnt], 2).flatten(1)

    def forward(self, numeric, codes):
        x = torch.cat([self.embed(numeric)] + [e(codes[:, i]) for i, e in enumerate(self.embeddings)], 1)
        x = x[:, None] * self.factors  # [B, members, in]
        for layer in self.layers:
            x = torch.relu(layer(x))
        return torch.einsum("bmi,mio->bmo", x, self.heads["weight"]) + self.heads["bias"][:, 0]


def record_ensemble(path, numeric_width, cardinalities, hidden, classes, members, periodic):
    rows = STEPS * BATCH
    numeric = torch.randn(rows, numeric_width)
    codes = torch.stack([torch.randint(0, c, (rows,)) for c in cardinalities], 1) \
        if cardinalities else torch.zeros(rows, 0, dtype=torch.long)
    target = torch.randint(0, classes, (rows,)) if classes else numeric.sum(1) + torch.randn(rows)
    model = Ensemble(numeric_width, cardinalities, hidden, classes or 1, members, periodic)
    tensors = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    losses = []
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        outputs, wanted = model(numeric[batch], codes[batch]), target[batch]
        if classes:
            each = [nn.functional.cross_entropy(outputs[:, m], wanted) for m in range(members)]
        else:
            each = [nn.functional.mse_loss(outputs[:, m, 0], wanted) for m in range(members)]
        loss = sum(each) / members
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        losses.append(loss.item())
    tensors.update({"in.numeric": numeric.numpy(), "in.codes": codes.numpy(), "in.target": target.numpy(),
                    "out.losses": np.array(losses, np.float32)})
    with torch.no_grad():
        outputs = model(numeric[:BATCH], codes[:BATCH])
        tensors["out.predictions"] = (outputs.softmax(2) if classes else outputs).mean(1).numpy()
    write_safetensors(path, tensors)
    print(path, "losses", losses[0], "...", losses[-1])


def record(path, numeric_width, cardinalities, hidden, classes, spike):
    rows = STEPS * BATCH
    numeric = torch.randn(rows, numeric_width)
    codes = torch.stack([torch.randint(0, c, (rows,)) for c in cardinalities], 1) \
        if cardinalities else torch.zeros(rows, 0, dtype=torch.long)
    if classes:
        target = torch.randint(0, classes, (rows,))
        lossfn = nn.functional.cross_entropy
    else:
        target = numeric.sum(1) + torch.randn(rows)
        # The gradients of steps 5 and 11 are clipped.
        target[5 * BATCH] = spike
        target[11 * BATCH] = -spike
        lossfn = lambda output, wanted: nn.functional.mse_loss(output.squeeze(1), wanted)
    model = Mlp(numeric_width, cardinalities, hidden, classes or 1)
    tensors = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    losses, clipped = [], 0
    for step in range(STEPS):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        loss = lossfn(model(numeric[batch], codes[batch]), target[batch])
        loss.backward()
        clipped += float(nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)) > MAX_NORM
        optimizer.step()
        losses.append(loss.item())
    assert classes or clipped >= 2, clipped
    tensors["in.numeric"] = numeric.numpy()
    tensors["in.codes"] = codes.numpy()
    tensors["in.target"] = target.numpy()
    tensors["out.losses"] = np.array(losses, np.float32)
    with torch.no_grad():
        output = model(numeric[:BATCH], codes[:BATCH])
        tensors["out.predictions"] = (output.softmax(1) if classes else output).numpy()
    write_safetensors(path, tensors)
    print(path, "losses", losses[0], "...", losses[-1], "clipped", clipped)


def record_scaler(path):
    """Records the scale of GradScaler after each update, with gradients that sometimes overflow."""
    steps = 4500
    found = np.zeros(steps, np.float32)
    found[[0, 1, 2, 100, 2099, 2100, 4400]] = 1
    scaler = torch.amp.GradScaler("cpu")
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scales = []
    for bad in found:
        scaler.scale(torch.ones(1))  # creates the scale lazily
        weight.grad = torch.full((1,), float("inf") if bad else 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    write_safetensors(path, {"found_inf": found, "scales": np.array(scales, np.float32)})
    print(path, "scales", sorted(set(scales)))


def record_schedule(path):
    """Records a linear warm-up over 10 steps, then a cosine to 0 at step 100."""
    warmup, total, peak = 10, 100, 1e-3
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=peak)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [
        torch.optim.lr_scheduler.LinearLR(optimizer, 1 / warmup, 1, warmup - 1),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup)], [warmup])
    rates = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    write_safetensors(path, {"rates": np.array(rates, np.float32)})
    print(path, rates[:3], rates[9:12], rates[-1])


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    record(os.path.join(here, "mlp_numeric.safetensors"), 12, [], [24, 16], 5, 0)
    record(os.path.join(here, "mlp_embeddings.safetensors"), 3, [7, 40, 3], [20], 0, 60.0)
    record_ensemble(os.path.join(here, "mlp_members.safetensors"), 6, [5], [24, 16], 3, 4, None)
    record_ensemble(os.path.join(here, "mlp_periodic.safetensors"), 4, [7, 3], [20], 0, 3, (5, 4, 0.3))
    record_scaler(os.path.join(here, "grad_scaler.safetensors"))
    record_schedule(os.path.join(here, "schedule.safetensors"))


if __name__ == "__main__":
    main()
