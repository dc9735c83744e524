"""Records what timm's ViT, ConvNeXt and EfficientNet compute with weights that follow from the parameters' names.

    pip install timm==1.0.22 torchvision==0.26.0            into an environment that has torch
    python3 tests/golden/image_networks_golden.py           rewrites tests/golden/image_networks.safetensors

Weights, images and digests are made as in resnet_golden.py. The ViT sees images of 64 pixels, so that its positions are
interpolated, and one of 224 pixels, for which they are not.
"""
import os

import numpy as np
import timm
import torch
from torch.nn import functional as F

from mlp_golden import write_safetensors
from resnet_golden import CLASSES, digest, drawn, fill

NETWORKS = {"vit_tiny_patch16_224": {"dynamic_img_size": True}, "convnext_atto": {}, "convnext_tiny": {}, "efficientnet_b0": {"drop_rate": 0.0}}
BATCH, SIZE, STEPS = 4, 64, 3
LEARNING_RATE, MOMENTUM = 0.002, 0.9


def images(batch, size):
    return torch.from_numpy(drawn("images", batch * 3 * size * size).astype(np.float32)).reshape(
        batch, size, size, 3).permute(0, 3, 1, 2)


def made(name):
    model = timm.create_model(name, num_classes=CLASSES, **NETWORKS[name])
    fill(model)
    return model


def main():
    torch.set_num_threads(1)
    x, classes = images(BATCH, SIZE), torch.arange(BATCH) % CLASSES
    tensors = {}
    for name in NETWORKS:
        with torch.no_grad():
            tensors[f"out.{name}.logits"] = made(name).eval()(x).numpy()
            if name.startswith("vit"):
                tensors[f"out.{name}.large"] = made(name).eval()(images(1, 224)).numpy()
        model = made(name).train().double()
        loss = F.cross_entropy(model(x.double()), classes)
        loss.backward()
        tensors[f"out.{name}.loss"] = np.array([loss.item()], np.float32)
        # Of each parameter and buffer, in the order of their names: its gradient, or what it is after the step.
        after = {n: p.grad for n, p in model.named_parameters()}
        after.update({n: b for n, b in model.named_buffers() if b.is_floating_point()})
        rows = [digest(n, after[n]) for n in sorted(after)]
        tensors[f"out.{name}.after"] = np.stack([np.pad(row, (0, 10 - row.size)) for row in rows])
        model = made(name).train()
        optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, MOMENTUM)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), classes)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        tensors[f"out.{name}.losses"] = np.array(losses, np.float32)
        print(name, losses, tensors[f"out.{name}.logits"][0])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "image_networks.safetensors"), tensors)


if __name__ == "__main__":
    main()
