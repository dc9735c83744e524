#!/usr/bin/env python3
"""Five MLPs predict 100,000 rows with one thread, as `learner_bench DIR ensemble` does: the PyTorch peer.

    python pytorch_ensemble.py DIR [--rounds N] [--no-compile]

DIR: of generate_data.py. One JSON line for each variant: rows a second by the clock, of the best block size, and of bf16 the
largest distance from float32's answers in units of their deviation.
"""
import argparse
import json
import statistics
import time

import pytorch_common as peers
import torch

ROWS, MODELS, BLOCKS = 100_000, 5, (1024, 4096, 100_000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(peers.SEED)
    x = peers.load(options.data, "tab_x")[0][:ROWS].contiguous()
    models = [peers.MLP().eval() for _ in range(MODELS)]

    def ensemble(rows):
        return sum(model(rows) for model in models) / MODELS

    wanted = None
    for compiled in (False,) if options.no_compile else (False, True):
        answer = torch.compile(ensemble) if compiled else ensemble
        for half in (False, True):
            best, out = 0, None
            for block in BLOCKS:
                walls = []
                for _ in range(options.rounds + 1):  # the first one warms up
                    begin = time.perf_counter()
                    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
                        out = torch.cat([answer(x[i:i + block]).float() for i in range(0, ROWS - ROWS % block, block)])
                    walls.append(time.perf_counter() - begin)
                best = max(best, len(out) / statistics.median(walls[1:]))
            if wanted is None:
                wanted = out
            error = float((out[:len(wanted)] - wanted[:len(out)]).abs().max() / wanted.std())
            print(json.dumps({"work": "ensemble", "variant": ("compile" if compiled else "eager") + ("_bf16" if half else ""),
                              "rows_s": round(best), "error": error}), flush=True)


if __name__ == "__main__":
    main()
