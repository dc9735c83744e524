"""Records what torchvision's changes of RandAugment make of an image.

    pip install --no-deps torchvision==0.26.0 pillow        where torch is
    python3 tests/golden/rand_augment_golden.py             rewrites tests/golden/rand_augment.safetensors
"""
import os

import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.autoaugment import RandAugment, _apply_op

from pretrained_golden import write

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, MAGNITUDE = 24, 14
NAMES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
         "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]


def main():
    generator = torch.Generator().manual_seed(3)
    coarse = torch.rand((3, 6, 6), generator=generator)
    image = torch.nn.functional.interpolate(coarse[None], size=SIZE, mode="bilinear")[0]
    image = (40 + 170 * image + 6 * torch.randn(image.shape, generator=generator)).clamp(0, 255).to(torch.uint8)
    space = RandAugment()._augmentation_space(31, (SIZE, SIZE))
    recorded = {"in.image": image.permute(1, 2, 0).float()}
    for number, name in enumerate(NAMES):
        strengths, signed = space[name]
        strength = float(strengths[MAGNITUDE]) if strengths.ndim > 0 else 0.0
        recorded[f"strength.{number}"] = torch.tensor([strength, float(signed)])
        for sign in (1, -1) if signed else (1,):
            changed = _apply_op(image, name, sign * strength, interpolation=InterpolationMode.NEAREST, fill=None)
            recorded[f"out.{number}.{'plus' if sign > 0 else 'minus'}"] = changed.permute(1, 2, 0).float()
    write(os.path.join(HERE, "rand_augment.safetensors"), recorded)


if __name__ == "__main__":
    main()
