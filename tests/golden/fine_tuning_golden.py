"""Records how PyTorch fine-tunes a ResNet: a fixed body first, then learning rates by layer, no decay for norms.

    .deps/venv/bin/python tests/golden/fine_tuning_golden.py      rewrites tests/golden/fine_tuning.safetensors

Weights and images are those of resnet_golden.py. In the first steps the body is in eval mode and without gradients, so
its statistics stay, and its moments have no steps when it begins to train.
"""
import os

import numpy as np
import torch
from torch.nn import functional as F

from mlp_golden import write_safetensors
from resnet_golden import BATCH, CLASSES, ResNet, digest, fill, images

FROZEN, STEPS = 2, 5
RATE, LAYER_DECAY, WEIGHT_DECAY, CLIP = 0.002, 0.7, 0.05, 0.8
OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, RATE),
    "adam": lambda groups: torch.optim.Adam(groups, RATE),
    "sgd": lambda groups: torch.optim.SGD(groups, RATE, 0.9, nesterov=True),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, RATE, momentum=0.5),
}
WATCHED = ["conv1.weight", "bn1.bias", "layer2.0.downsample.0.weight", "layer4.1.bn2.weight", "fc.weight", "fc.bias"]


def depth_of(name):
    """As timm's param_groups_layer_decay counts: the stem, each block, the head."""
    if name.startswith("fc."):
        return 9
    if not name.startswith("layer"):
        return 0
    stage, block = name.split(".")[:2]
    return 1 + 2 * (int(stage[5:]) - 1) + int(block)


def groups_of(model, factor):
    return [{"params": [p], "lr": RATE * factor ** (9 - depth_of(name)), "weight_decay": WEIGHT_DECAY if p.dim() > 1 else 0}
            for name, p in model.named_parameters()]


def main():
    torch.set_num_threads(1)
    x, classes = images().permute(0, 3, 1, 2), torch.arange(BATCH) % CLASSES
    tensors = {}
    for kind, make in OPTIMIZERS.items():
        model = ResNet("resnet18", CLASSES)
        fill(model)
        model.double()
        optimizer = make(groups_of(model, LAYER_DECAY))
        losses = []
        for step in range(STEPS):
            frozen = step < FROZEN
            model.train(not frozen)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(not frozen or name.startswith("fc."))
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x.double()), classes)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], CLIP)
            optimizer.step()
            losses.append(loss.item())
        print(kind, losses)
        tensors[f"out.{kind}.losses"] = np.array(losses, np.float32)
        state = model.state_dict()
        for name in WATCHED:
            # What has moved: the weights themselves would hide a small step.
            before = ResNet("resnet18", CLASSES)
            fill(before)
            tensors[f"out.{kind}.moved.{name}"] = digest(name, state[name] - before.state_dict()[name].double())
        tensors[f"out.{kind}.mean"] = digest("layer1.0.bn1.running_mean", state["layer1.0.bn1.running_mean"])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "fine_tuning.safetensors"), tensors)


if __name__ == "__main__":
    main()
