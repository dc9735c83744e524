"""Records PyTorch's training of the engine's text encoder, padded with masks, and with its own disentangled attention.

    .deps/venv/bin/python tests/golden/text_golden.py    rewrites tests/golden/text.safetensors

The file has weights, texts of different lengths, columns and the loss of each step
(tests/worker/model/text_encoder_test.cc).
"""
import math
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors

STEPS, BATCH, NUMERIC, VOCABULARY, LONGEST = 20, 8, 3, 30, 90
WIDTH, HEADS, LAYERS, FEEDFORWARD, SPAN = 16, 4, 2, 24, 32
CARDINALITY = 6
LEARNING_RATE, MAX_NORM = 3e-3, 5.0


def log_bucket(distance, span, most):
    """DeBERTa v2's make_log_bucket_position for one distance."""
    middle, far = span // 2, abs(distance)
    if far <= middle:
        return distance
    position = math.ceil(math.log(far / middle) / math.log((most - 1) / middle) * (middle - 1)) + middle
    return int(math.copysign(position, distance))


def bucket(distance):
    return min(max(log_bucket(distance, SPAN, LONGEST) + SPAN, 0), 2 * SPAN - 1)


BUCKETS = torch.tensor([[bucket(i - j) for j in range(LONGEST)] for i in range(LONGEST)])


class Layer(nn.Module):
    """A pre-norm layer with disentangled attention; parameters named as nn.TransformerEncoderLayer's."""

    def __init__(self):
        super().__init__()
        reference = nn.TransformerEncoderLayer(WIDTH, HEADS, FEEDFORWARD)
        for name in ("self_attn", "linear1", "linear2", "norm1", "norm2"):
            setattr(self, name, getattr(reference, name))

    def forward(self, x, pad, relative):
        b, t, _ = x.shape
        weight, bias = self.self_attn.in_proj_weight, self.self_attn.in_proj_bias
        heads = lambda y: y.view(*y.shape[:-1], HEADS, WIDTH // HEADS).transpose(-2, -3)
        q, k, v = (heads(y) for y in F.linear(self.norm1(x), weight, bias).chunk(3, -1))
        rq, rk = (heads(y) for y in F.linear(relative, weight[:2 * WIDTH], bias[:2 * WIDTH]).chunk(2, -1))
        at = BUCKETS[:t, :t].expand(b, HEADS, t, t)
        scores = q @ k.transpose(2, 3) + (q @ rk.transpose(1, 2)).gather(3, at)
        scores = scores + (k @ rq.transpose(1, 2)).gather(3, at.transpose(2, 3)).transpose(2, 3)
        scores = (scores / math.sqrt(3 * WIDTH // HEADS)).masked_fill(pad[:, None, None, :], -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, WIDTH)
        x = x + self.self_attn.out_proj(mixed)
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))

    def one_by_one(self, x, relative):
        """The same for one text without padding, score by score. x: [T, D]."""
        wq, wk, wv = self.self_attn.in_proj_weight.chunk(3)
        bq, bk, bv = self.self_attn.in_proj_bias.chunk(3)
        seen, d = self.norm1(x), WIDTH // HEADS
        mixed = torch.zeros_like(x)
        for h in range(HEADS):
            part = slice(h * d, (h + 1) * d)
            query, key, value = seen @ wq[part].T + bq[part], seen @ wk[part].T + bk[part], seen @ wv[part].T + bv[part]
            for i in range(len(x)):
                scores = []
                for j in range(len(x)):
                    r = relative[bucket(i - j)]
                    by_content = query[i] @ key[j]
                    by_position = query[i] @ (wk[part] @ r + bk[part]) + key[j] @ (wq[part] @ r + bq[part])
                    scores.append((by_content + by_position) / math.sqrt(3 * d))
                mixed[i, part] = torch.stack(scores).softmax(0) @ value
        x = x + self.self_attn.out_proj(mixed)
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Text(nn.Module):
    def __init__(self, disentangled, outputs, columns=True):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        if disentangled:
            self.relative = nn.Embedding(2 * SPAN, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        else:
            self.position = nn.Parameter(torch.randn(LONGEST, WIDTH))
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, FEEDFORWARD, dropout=0.0, batch_first=True,
                                               norm_first=True, activation="gelu")
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).layers
        self.disentangled, self.joined = disentangled, columns
        if columns:
            self.embeddings = nn.ModuleList([nn.Embedding(CARDINALITY, CARDINALITY // 2)])
            self.columns = nn.Linear(NUMERIC + CARDINALITY // 2, 32)
        self.head = nn.Sequential(nn.Linear(WIDTH + (32 if columns else 0), 64), nn.ReLU(), nn.Linear(64, outputs))
        for p in self.layers.parameters():  # equal layers, and norms of 1 and 0, would hide swapped parameters
            nn.init.normal_(p, 0.0, 0.3) if p.dim() > 1 else nn.init.uniform_(p, 0.5, 1.0)

    def names(self):
        return {("encoder." + n if n.startswith("layers.") else n): p for n, p in self.named_parameters()}

    def join(self, pooled, numeric, codes):
        if self.joined:
            columns = torch.cat([numeric, self.embeddings[0](codes[:, 0])], 1)
            pooled = torch.cat([pooled, F.relu(self.columns(columns))], 1)
        return self.head(pooled)

    def forward(self, texts, numeric, codes):
        length = torch.tensor([len(t) for t in texts])
        padded = nn.utils.rnn.pad_sequence(texts, batch_first=True)
        pad = torch.arange(padded.shape[1])[None] >= length[:, None]
        x = self.tokens(padded)
        if self.disentangled:
            for layer in self.layers:
                x = layer(x, pad, self.relative.weight)
        else:
            x = x + self.position[:x.shape[1]]
            for layer in self.layers:
                x = layer(x, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.join((x * keep).sum(1) / keep.sum(1), numeric, codes)

    def one_by_one(self, texts, numeric, codes):
        pooled = []
        for text in texts:
            x = self.tokens(text)
            for layer in self.layers:
                x = layer.one_by_one(x, self.relative.weight)
            pooled.append(x.mean(0))
        return self.join(torch.stack(pooled), numeric, codes)


# name: disentangled, outputs, with columns, classes
RUNS = {"plain": (False, 1, True, False), "disentangled": (True, 3, True, True),
        "text_alone": (True, 2, False, False)}


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    lengths = torch.randint(1, 20, (rows,))
    lengths[::13], lengths[5] = LONGEST, 1
    texts = [torch.randint(0, VOCABULARY, (n,)) for n in lengths]
    numeric = torch.randn(rows, NUMERIC)
    codes = torch.randint(0, CARDINALITY, (rows, 1))
    first = torch.tensor([float(t[0]) for t in texts])
    values = torch.stack([first / 10 - 1, numeric.sum(1)], 1) + 0.1 * torch.randn(rows, 2)
    classes = (first.long() + codes[:, 0]) % 3
    tensors = {"in.tokens": torch.cat(texts), "in.ends": lengths.cumsum(0), "in.numeric": numeric, "in.codes": codes,
               "in.values": values, "in.classes": classes}
    tensors = {name: t.numpy() for name, t in tensors.items()}
    for run, (disentangled, outputs, columns, classify) in RUNS.items():
        model = Text(disentangled, outputs, columns)
        tensors.update({f"{run}.{n}": p.detach().numpy().copy() for n, p in model.names().items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
        losses = []
        with torch.no_grad():
            output = model(texts[:BATCH], numeric[:BATCH], codes[:BATCH])
            if disentangled:
                slow = model.one_by_one(texts[:BATCH], numeric[:BATCH], codes[:BATCH])
                assert torch.allclose(output, slow, rtol=1e-4, atol=1e-5), (output - slow).abs().max()
                output = slow
            tensors[f"out.{run}.first"] = output.numpy()
        for step in range(STEPS):
            part = slice(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            output = model(texts[part], numeric[part], codes[part])
            loss = F.cross_entropy(output, classes[part]) if classify else F.mse_loss(output, values[part][:, :outputs])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        print(run, losses[0], "...", losses[-1])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "text.safetensors"), tensors)


if __name__ == "__main__":
    main()
