"""Records checkpoints in the forms of other libraries, and PyTorch's outputs with their weights.

    .deps/venv/bin/python tests/golden/pretrained_golden.py    rewrites tests/golden/pretrained.safetensors

They are two text encoders with the names of BERT and DeBERTa (queries, keys and values are separate, some matrices
are transposed, tables have additional rows, some tensors are in half precision), and a CNN with the names of
torchvision's ResNets (tests/worker/pretrained/golden_test.cc).
"""
import json
import os
import struct

import torch

from cnn_golden import Cnn
from text_golden import LAYERS, LONGEST, NUMERIC, VOCABULARY, CARDINALITY, WIDTH, Text

BATCH, PIECES, SIZE = 8, VOCABULARY - 1, 9
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def rounded(parameter, dtype):
    """Rounds the parameter to the precision in place and returns the rounded tensor."""
    with torch.no_grad():
        parameter.copy_(parameter.to(dtype).float())
    return parameter.to(dtype)


def more_rows(table, before, after):
    return torch.cat([torch.full((before, table.shape[1]), 7.0), table, torch.full((after, table.shape[1]), 7.0)])


def text(prefix, disentangled, outputs):
    model = Text(disentangled, outputs)
    own = model.names()
    found = {f"{prefix}.embeddings.word_embeddings.weight": more_rows(own["tokens.weight"][:PIECES], 0, 6),
             f"{prefix}.embeddings.position_ids": torch.arange(LONGEST)[None]}
    if disentangled:
        found[f"{prefix}.encoder.rel_embeddings.weight"] = own["relative.weight"]
    else:
        found[f"{prefix}.embeddings.position_embeddings.weight"] = more_rows(own["position"], 2, 3)
    attention = ["query_proj", "key_proj", "value_proj"] if disentangled else ["query", "key", "value"]
    for i in range(LAYERS):
        layer, theirs = f"encoder.layers.{i}", f"{prefix}.encoder.layer.{i}"
        for kind in ("weight", "bias"):
            for name, part in zip(attention, own[f"{layer}.self_attn.in_proj_{kind}"].chunk(3)):
                found[f"{theirs}.attention.self.{name}.{kind}"] = part
            found[f"{theirs}.attention.output.dense.{kind}"] = own[f"{layer}.self_attn.out_proj.{kind}"]
            found[f"{theirs}.output.dense.{kind}"] = rounded(own[f"{layer}.linear2.{kind}"], torch.float16)
            for ours, name in (("norm1", "attention.norm"), ("norm2", "norm")):
                found[f"{theirs}.{name}.{kind}"] = rounded(own[f"{layer}.{ours}.{kind}"], torch.bfloat16)
        found[f"{theirs}.intermediate.dense.weight"] = own[f"{layer}.linear1.weight"].T
        found[f"{theirs}.intermediate.dense.bias"] = own[f"{layer}.linear1.bias"]
    for ours in ("embeddings.0.weight", "columns.weight", "columns.bias", "head.0.weight", "head.0.bias", "head.2.weight",
                 "head.2.bias"):
        found[f"{prefix}.own.{ours}"] = own[ours]
    return model.eval(), found


def resnet(prefix):
    model = Cnn(3, 8, [1, 2, 1], [], 0, 4).eval()
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            torch.nn.init.uniform_(buffer, 0.5, 1.5)
    names = {"stem.conv": "conv1", "stem.norm": "bn1", "head": "fc"}
    for stage, blocks in enumerate(model.stages):
        for b in range(len(blocks)):
            ours, theirs = f"stages.{stage}.{b}", f"layer{stage + 1}.{b}"
            names.update({f"{ours}.first.conv": f"{theirs}.conv1", f"{ours}.first.norm": f"{theirs}.bn1",
                          f"{ours}.second.conv": f"{theirs}.conv2", f"{ours}.second.norm": f"{theirs}.bn2",
                          f"{ours}.shortcut.conv": f"{theirs}.downsample.0",
                          f"{ours}.shortcut.norm": f"{theirs}.downsample.1"})
    found = {}
    for name, value in model.state_dict().items():
        module, kind = name.rsplit(".", 1)
        found[f"{prefix}.{names[module]}.{kind}"] = value
    return model, found


def main():
    torch.manual_seed(23)
    torch.set_num_threads(1)
    lengths = torch.randint(1, 20, (BATCH,))
    lengths[0], lengths[5] = LONGEST, 1
    texts = [torch.randint(0, PIECES, (int(n),)) for n in lengths]
    numeric, codes = torch.randn(BATCH, NUMERIC), torch.randint(0, CARDINALITY, (BATCH, 1))
    images = torch.randn(BATCH, SIZE, SIZE, 3)
    tensors = {"in.tokens": torch.cat(texts), "in.ends": lengths.cumsum(0), "in.numeric": numeric, "in.codes": codes,
               "in.images": images}
    with torch.no_grad():
        for prefix, disentangled, outputs in (("bert", False, 1), ("deberta", True, 3)):
            model, found = text(prefix, disentangled, outputs)
            tensors.update(found)
            tensors[f"out.{prefix}"] = model(texts, numeric, codes)
        model, found = resnet("resnet")
        tensors.update(found)
        tensors["out.resnet"] = model(images.permute(0, 3, 1, 2), numeric[:, :0], None)
    here = os.path.dirname(os.path.abspath(__file__))
    write(os.path.join(here, "pretrained.safetensors"), tensors)


if __name__ == "__main__":
    main()
