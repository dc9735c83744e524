"""Records what PyTorch computes with ResNets whose weights follow from the parameters' names.

    .deps/venv/bin/python tests/golden/resnet_golden.py            rewrites tests/golden/resnet.safetensors
    python3 tests/golden/resnet_golden.py --compare                compares the networks here with torchvision's and
                                                                   timm's, in an environment that has both

No weight is recorded: weight i of a parameter follows from the CRC-32 of its name and from i, so that the test makes
the same ones (tests/worker/model/resnet_test.cc). Of each large result the file has a digest.
"""
import os
import sys
import zlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import write_safetensors

ARCHITECTURES = {"resnet18": (False, [2, 2, 2, 2]), "resnet34": (False, [3, 4, 6, 3]),
                 "resnet50": (True, [3, 4, 6, 3]), "resnet101": (True, [3, 4, 23, 3])}
CLASSES, BATCH, SIZE, STEPS = 5, 4, 65, 3
TRAINED = ["resnet18", "resnet50"]
LEARNING_RATE, MOMENTUM = 0.01, 0.9
SCALES, SHIFT = [1, 1.25, 0.75], 0.1


class Block(nn.Module):
    def __init__(self, inside, width, stride, bottleneck):
        super().__init__()
        outside = 4 * width if bottleneck else width
        # inside, outside, size, stride
        convolutions = ([(inside, width, 1, 1), (width, width, 3, stride), (width, outside, 1, 1)] if bottleneck else
                        [(inside, width, 3, stride), (width, width, 3, 1)])
        for k, (i, o, size, s) in enumerate(convolutions, 1):
            setattr(self, f"conv{k}", nn.Conv2d(i, o, size, s, size // 2, bias=False))
            setattr(self, f"bn{k}", nn.BatchNorm2d(o))
        self.count, self.downsample = len(convolutions), None
        if stride > 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = x
        for k in range(1, self.count + 1):
            y = getattr(self, f"bn{k}")(getattr(self, f"conv{k}")(y))
            if k < self.count:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, architecture, classes):
        super().__init__()
        bottleneck, blocks = ARCHITECTURES[architecture]
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        inside = 64
        for stage, count in enumerate(blocks):
            width, made = 64 * 2 ** stage, []
            for i in range(count):
                made.append(Block(inside, width, 2 if stage > 0 and i == 0 else 1, bottleneck))
                inside = 4 * width if bottleneck else width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(inside, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


def drawn(name, count):
    """Numbers of [-1, 1), the same in every language."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(zlib.crc32(name.encode()))
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float64) / 2 ** 23 - 1


def values_of(name, shape):
    """Values that keep activations of a usual size, and tell every tensor from every other."""
    u = drawn(name, int(np.prod(shape)))
    kind = name.rsplit(".", 1)[-1]
    if kind == "running_var":
        values = 1 + 0.5 * u
    elif kind == "running_mean" or kind == "bias":
        values = 0.1 * u
    elif len(shape) == 1:  # a norm's weight
        values = 0.4 + 0.2 * u
    else:
        values = u * np.sqrt(3.0 / np.prod(shape[1:]))
    return torch.from_numpy(values.astype(np.float32)).reshape(list(shape))


def fill(model):
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.copy_(values_of(name, value.shape))


def digest(name, tensor):
    """The shape, the length, a projection, and the first values."""
    flat = tensor.detach().double().flatten().numpy()
    shape = list(tensor.shape) + [0] * (4 - tensor.dim())
    first = list(flat[:4])
    return np.array(shape + [np.sqrt((flat ** 2).sum()), (flat * drawn("digest " + name, flat.size)).sum()] + first, np.float32)


def images():
    return torch.from_numpy(drawn("images", BATCH * 3 * SIZE * SIZE).astype(np.float32)).reshape(BATCH, SIZE, SIZE, 3)


def rounded(x):
    return int(np.floor(x + 0.5))


def views(x):
    """The image at each size; there, itself and four windows towards its corners; each of them and its mirror image."""
    for scale in SCALES:
        side = rounded(scale * SIZE)
        scaled = x if side == SIZE else F.interpolate(x, (side, side), mode="bilinear", align_corners=False, antialias=True)
        by = rounded(SHIFT * side)
        padded = F.pad(scaled, (by, by, by, by), mode="replicate")
        for top, left in [(by, by), (0, 0), (0, 2 * by), (2 * by, 0), (2 * by, 2 * by)]:
            view = padded[:, :, top:top + side, left:left + side]
            yield view
            yield view.flip(3)


def compare():
    import timm
    import torchvision
    x = images().permute(0, 3, 1, 2)
    for architecture in ARCHITECTURES:
        ours = ResNet(architecture, CLASSES)
        fill(ours)
        for make in (getattr(torchvision.models, architecture), lambda num_classes: timm.create_model(
                architecture, num_classes=num_classes)):
            theirs = make(num_classes=CLASSES)
            assert list(theirs.state_dict()) == list(ours.state_dict()), architecture
            theirs.load_state_dict(ours.state_dict())
            with torch.no_grad():
                error = (theirs.eval()(x) - ours.eval()(x)).abs().max().item()
            print(architecture, type(theirs).__module__, "largest difference of logits:", error)
            assert error < 1e-5


def main():
    torch.set_num_threads(1)
    x, classes = images().permute(0, 3, 1, 2), torch.arange(BATCH) % CLASSES
    tensors = {}
    for architecture in ARCHITECTURES:
        model = ResNet(architecture, CLASSES)
        fill(model)
        with torch.no_grad():
            tensors[f"out.{architecture}.logits"] = model.eval()(x).numpy()
            if architecture == "resnet18":
                tensors["out.views.logits"] = torch.stack([model(view) for view in views(x)]).mean(0).numpy()
        if architecture not in TRAINED:
            continue
        model.train().double()  # float32's noise grows from layer to layer and would hide mistakes
        loss = F.cross_entropy(model(x.double()), classes)
        loss.backward()
        tensors[f"out.{architecture}.loss"] = np.array([loss.item()], np.float32)
        for name, parameter in model.named_parameters():
            tensors[f"out.{architecture}.gradient.{name}"] = digest(name, parameter.grad)
        for name, buffer in model.named_buffers():  # after the step
            if buffer.is_floating_point():
                tensors[f"out.{architecture}.buffer.{name}"] = digest(name, buffer)
        print(architecture, loss.item(), tensors[f"out.{architecture}.logits"][0])
    model = ResNet("resnet18", CLASSES)
    fill(model)
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, MOMENTUM)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), classes)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(losses)
    tensors["out.losses"] = np.array(losses, np.float32)
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "resnet.safetensors"), tensors)


if __name__ == "__main__":
    compare() if "--compare" in sys.argv else main()
