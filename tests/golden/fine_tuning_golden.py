"""Records how PyTorch fine-tunes a ResNet: a fixed body first, which then thaws at once or layer by layer, learning rates
by layer, no decay for norms.

    .deps/venv/bin/python tests/golden/fine_tuning_golden.py      rewrites tests/golden/fine_tuning.safetensors

Weights and images are those of resnet_golden.py. In the first steps the body is in eval mode and without gradients, so
its statistics stay, and its moments have no steps when it begins to train. The same holds for each layer where they
thaw one after the other, from the last one on.
"""
import os

import numpy as np
import torch
from torch.nn import functional as F

from mlp_golden import write_safetensors
from resnet_golden import BATCH, CLASSES, ResNet, digest, fill, images

FROZEN, STEPS = 2, 5
THAWED = [0, 3, 6, 9, 9]  # layers of the body, of nine, that each step trains
BODY = 9
RATE, LAYER_DECAY, WEIGHT_DECAY, CLIP = 0.002, 0.7, 0.05, 0.8
OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, RATE),
    "adam": lambda groups: torch.optim.Adam(groups, RATE),
    "sgd": lambda groups: torch.optim.SGD(groups, RATE, 0.9, nesterov=True),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, RATE, momentum=0.5),
}
# With a large eps the sign of a tiny gradient makes no step, and the number of a layer's steps still counts.
THAWING = {"thaw_adamw": lambda groups: torch.optim.AdamW(groups, RATE, eps=0.1), "thaw_sgd": OPTIMIZERS["sgd"]}
WATCHED = ["conv1.weight", "bn1.bias", "layer2.0.downsample.0.weight", "layer4.1.bn2.weight", "fc.weight", "fc.bias"]


def depth_of(name):
    """As timm's param_groups_layer_decay counts: the stem, each block, the head."""
    if name.startswith("fc."):
        return 9
    if not name.startswith("layer"):
        return 0
    stage, block = name.split(".")[:2]
    return 1 + 2 * (int(stage[5:]) - 1) + int(block or 0)


def groups_of(model, factor):
    return [{"params": [p], "lr": RATE * factor ** (9 - depth_of(name)), "weight_decay": WEIGHT_DECAY if p.dim() > 1 else 0}
            for name, p in model.named_parameters()]


def fix(model, trained):
    """All but the head and the last layers of the body."""
    for name, module in model.named_modules():
        if name:
            module.train(depth_of(name + ".") >= BODY - trained)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(depth_of(name) >= BODY - trained)


def main():
    torch.set_num_threads(1)
    x, classes = images().permute(0, 3, 1, 2), torch.arange(BATCH) % CLASSES
    tensors = {}
    for kind, make in [*OPTIMIZERS.items(), *THAWING.items()]:
        model = ResNet("resnet18", CLASSES)
        fill(model)
        model.double()
        optimizer = make(groups_of(model, LAYER_DECAY))
        losses = []
        for step in range(STEPS):
            fix(model, THAWED[step] if kind.startswith("thaw") else 0 if step < FROZEN else BODY)
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
        tensors[f"out.{kind}.variance"] = digest("layer3.1.bn2.running_var", state["layer3.1.bn2.running_var"])
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "fine_tuning.safetensors"), tensors)


if __name__ == "__main__":
    main()
