"""Records PyTorch's training with each objective and optimizer: weights, batches and the loss of each step.

    .deps/venv/bin/python tests/golden/objectives_golden.py    rewrites tests/golden/objectives.safetensors

All runs start from the same weights and take the same batches
(tests/worker/learner/objectives_test.cc).
"""
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mlp_golden import Mlp, write_safetensors

STEPS, BATCH, NUMERIC, OUTPUTS = 20, 16, 8, 3
MEAN = torch.tensor([1.0, -20.0, 300.0])
SCALE = torch.tensor([2.0, 5.0, 40.0])
UNIT = torch.tensor([2.0, 0.5, 30.0])  # of counts: an output is the logarithm of an answer in this unit
POWER = 1.3
CLASS_WEIGHTS = torch.tensor([0.5, 1.0, 2.0])


def smape(output, values):
    answer = output * SCALE + MEAN
    return (2 * (answer - values).abs() / (answer.abs() + values.abs() + 1e-6)).mean()


def standardised(loss):
    return lambda output, values: loss(output, (values - MEAN) / SCALE)


def pinball(output, values):
    above = (values - MEAN) / SCALE - output
    return torch.maximum(0.8 * above, -0.2 * above).mean()


def poisson(output, counts):
    """Half the deviance: PyTorch's loss less what a perfect answer has."""
    wanted = counts / UNIT
    return F.poisson_nll_loss(output, wanted) - (wanted - torch.xlogy(wanted, wanted)).mean()


def tweedie(output, counts):
    mean = output.exp()
    return (mean ** (2 - POWER) / (2 - POWER) - counts / UNIT * mean ** (1 - POWER) / (1 - POWER)).mean()


def weighted_cross_entropy(output, classes):
    return F.cross_entropy(output, classes, weight=CLASS_WEIGHTS, label_smoothing=0.1)


# name: loss, optimizer, clip norm, EMA decay
RUNS = {
    "mse_adamw": (standardised(F.mse_loss), lambda p: torch.optim.AdamW(p, 3e-3, (0.8, 0.95), 1e-6, 0.1), 5.0, 0),
    "mae_adam": (standardised(F.l1_loss), lambda p: torch.optim.Adam(p, 3e-3, weight_decay=0.1), 0.2, 0),
    "huber_nesterov": (standardised(lambda o, v: F.huber_loss(o, v, delta=0.5)),
                       lambda p: torch.optim.SGD(p, 0.02, 0.9, weight_decay=0.01, nesterov=True), 0, 0),
    "smape_momentum": (smape, lambda p: torch.optim.SGD(p, 0.02, 0.9, weight_decay=0.01), 0, 0),
    "quantile": (pinball, lambda p: torch.optim.AdamW(p, 3e-3), 5.0, 0),
    "poisson": (poisson, lambda p: torch.optim.AdamW(p, 3e-3), 5.0, 0),
    "tweedie": (tweedie, lambda p: torch.optim.SGD(p, 0.02), 0, 0),
    "mse_sgd": (standardised(F.mse_loss), lambda p: torch.optim.SGD(p, 0.05), 0, 0),
    "mse_rmsprop": (standardised(F.mse_loss), lambda p: torch.optim.RMSprop(p, 1e-3, 0.95, 1e-7, 0.02), 0, 0),
    "huber_rmsprop_momentum": (standardised(F.huber_loss),
                               lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.9), 0, 0),
    "weighted_cross_entropy": (weighted_cross_entropy, lambda p: torch.optim.AdamW(p, 3e-3), 5.0, 0),
    "weighted_cross_entropy_sgd": (weighted_cross_entropy, lambda p: torch.optim.SGD(p, 0.5), 0, 0),
    "mse_ema": (standardised(F.mse_loss), lambda p: torch.optim.AdamW(p, 3e-3), 5.0, 0.8),
    "mse_ema_warmup": (standardised(F.mse_loss), lambda p: torch.optim.AdamW(p, 3e-3), 5.0, 0.6),
}


def average_of(run, model, decay):
    """With warm-up: the decay is that of torch_ema and of TensorFlow's num_updates. n: of the weights taken before."""
    if not decay:
        return None
    if "warmup" not in run:
        return torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))
    return torch.optim.swa_utils.AveragedModel(
        model, avg_fn=lambda average, weights, n: average + (1 - min(decay, (1 + n) / (10 + n))) * (weights - average))


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    rows = STEPS * BATCH
    numeric = torch.randn(rows, NUMERIC)
    values = (numeric[:, :3] + torch.randn(rows, 3)) * SCALE + MEAN
    classes = torch.randint(0, OUTPUTS, (rows,))
    initial = Mlp(NUMERIC, [], [16], OUTPUTS).state_dict()
    counts = torch.poisson(numeric[:, :3].exp() * UNIT)
    tensors = {name: value.numpy().copy() for name, value in initial.items()}
    tensors.update({"in.numeric": numeric.numpy(), "in.values": values.numpy(), "in.classes": classes.numpy(),
                    "in.counts": counts.numpy()})
    for run, (lossfn, optimizer_of, clip, decay) in RUNS.items():
        model = Mlp(NUMERIC, [], [16], OUTPUTS)
        model.load_state_dict(initial)
        optimizer = optimizer_of(model.parameters())
        average = average_of(run, model, decay)
        of_logarithm = run in ("poisson", "tweedie")
        target = classes if "cross_entropy" in run else counts if of_logarithm else values
        codes = torch.zeros(BATCH, 0, dtype=torch.long)
        losses, norms, answers = [], [], []
        for step in range(STEPS):
            batch = slice(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            loss = lossfn(model(numeric[batch], codes), target[batch])
            loss.backward()
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))))
            optimizer.step()
            if average:
                average.update_parameters(model)
                with torch.no_grad():
                    answers.append(average.module(numeric[:BATCH], codes) * SCALE + MEAN)
            losses.append(loss.item())
        tensors[f"out.{run}.losses"] = np.array(losses, np.float32)
        with torch.no_grad():
            output = (average.module if average else model)(numeric[:BATCH], codes)
            answer = output.softmax(1) if "cross_entropy" in run else output * SCALE + MEAN
            answer = output.exp() * UNIT if of_logarithm else answer
        tensors[f"out.{run}.predictions"] = answer.numpy()
        if "warmup" in run:
            tensors[f"out.{run}.answers"] = torch.stack(answers).numpy()
        print(run, losses[0], "...", losses[-1], "norms", min(norms), max(norms))
    here = os.path.dirname(os.path.abspath(__file__))
    write_safetensors(os.path.join(here, "objectives.safetensors"), tensors)


if __name__ == "__main__":
    main()
