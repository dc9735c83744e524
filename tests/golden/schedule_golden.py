"""Records the learning rates of PyTorch's schedulers: one row of rates per schedule.

    .deps/venv/bin/python tests/golden/schedule_golden.py     rewrites tests/golden/schedules.safetensors

The engine's schedules must give the same rates (tests/worker/train/schedule_test.cc).
"""
import os

import numpy as np
import torch
from torch.optim import lr_scheduler as schedulers

from mlp_golden import write_safetensors

STEPS, PEAK = 100, 3e-3


def rates(make, warmup=0):
    """Returns the rate of each step. make(optimizer, steps after the warm-up) returns a scheduler."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=PEAK)
    scheduler = make(optimizer, STEPS - warmup)
    if warmup:
        # OneCycleLR sets the rate when it is made, so the warm-up comes last.
        warm = schedulers.LinearLR(optimizer, 1 / warmup, 1, warmup - 1)
        scheduler = schedulers.SequentialLR(optimizer, [warm, scheduler], [warmup])
    seen = []
    for _ in range(STEPS):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(seen, np.float32)


def main():
    s = schedulers
    made = {
        "constant": rates(lambda o, n: s.ConstantLR(o, 1.0, n)),
        "constant_warm": rates(lambda o, n: s.ConstantLR(o, 1.0, n), 10),
        "step": rates(lambda o, n: s.StepLR(o, 15, 0.5)),
        "step_warm": rates(lambda o, n: s.StepLR(o, 15, 0.5), 10),
        "cosine": rates(lambda o, n: s.CosineAnnealingLR(o, n, 1e-4)),
        "cosine_warm": rates(lambda o, n: s.CosineAnnealingLR(o, n, 1e-4), 10),
        "restarts": rates(lambda o, n: s.CosineAnnealingWarmRestarts(o, 20, 1, 1e-4)),
        "restarts_doubling": rates(lambda o, n: s.CosineAnnealingWarmRestarts(o, 10, 2, 1e-4)),
        "restarts_warm": rates(lambda o, n: s.CosineAnnealingWarmRestarts(o, 10, 3, 1e-4), 7),
        "one_cycle": rates(lambda o, n: s.OneCycleLR(o, PEAK, n)),
        "one_cycle_other": rates(lambda o, n: s.OneCycleLR(o, PEAK, n, pct_start=0.5, div_factor=10,
                                                           final_div_factor=100)),
        "polynomial": rates(lambda o, n: s.PolynomialLR(o, n, 2.0)),
        "polynomial_warm": rates(lambda o, n: s.PolynomialLR(o, n, 1.0), 10),
    }
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "schedules.safetensors"), made)
    for name, values in made.items():
        print(name, values[:3], values[-2:])


if __name__ == "__main__":
    main()
