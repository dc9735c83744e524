#!/usr/bin/env python3
"""The PyTorch peer of tests/bench/engine.py: one variant of a workload, trained for as long as it is told.

    python pytorch_peer.py WORKLOAD VARIANT --data DIR --batch N --threads N

First it takes five steps and says {ready}, with `why` where they fail. Then it reads lines `SECONDS` on standard input and
answers each with one JSON line {steps, seconds, cpu_seconds, samples}. Variants and workloads: pytorch_common.py.
"""
import argparse
import sys
import time

import pytorch_common as peers
import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("variant")
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    peers.use(options.device)
    torch.set_num_threads(options.threads)
    work = peers.WORK[options.work](options.data)
    try:
        trainer = peers.Trainer(work, options.variant, options.batch)
        trainer.run(5)
        peers.synchronize()
    except Exception as e:  # such as bf16 on a processor without it, or no compiler
        peers.emit({"ready": False, "why": f"{type(e).__name__}: {e}".splitlines()[0]})
        return
    peers.emit({"ready": True})
    for line in sys.stdin:
        seconds = line
        began, cpu, steps = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - began < float(seconds):
            trainer.run(5)
            steps += 5
        peers.synchronize()
        passed = time.perf_counter() - began
        peers.emit({"steps": steps, "seconds": passed, "cpu_seconds": time.process_time() - cpu, "samples": steps * trainer.batch * work.accum})


if __name__ == "__main__":
    main()
