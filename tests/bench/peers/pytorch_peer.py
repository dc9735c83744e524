#!/usr/bin/env python3
"""The PyTorch peer of tests/bench/engine.py: holds the variants of a workload and trains the one it is told to.

    python pytorch_peer.py WORKLOAD --data DIR --batch N --threads N VARIANT...

Reads lines `VARIANT-NUMBER SECONDS` on standard input; answers each with one JSON line {steps, seconds,
cpu_seconds, samples}. First it says {ready: [...]}, for each variant whether it could take its first steps.
Variants and workloads: pytorch_common.py.
"""
import argparse
import json
import sys
import time

import pytorch_common as peers
import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    work = peers.WORK[options.work](options.data)
    trainers, usable = [peers.Trainer(work, variant, options.batch) for variant in options.variants], []
    for trainer in trainers:
        try:
            trainer.run(5)
            usable.append(True)
        except RuntimeError as e:  # such as bf16 on a processor without it
            print(f"{trainer.spec}: {e}", file=sys.stderr)
            usable.append(False)
    peers.emit({"ready": usable})
    for line in sys.stdin:
        number, seconds = line.split()
        trainer = trainers[int(number)]
        began, cpu, steps = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - began < float(seconds):
            trainer.run(5)
            steps += 5
        passed = time.perf_counter() - began
        peers.emit({"steps": steps, "seconds": passed, "cpu_seconds": time.process_time() - cpu, "samples": steps * trainer.batch * work.accum})


if __name__ == "__main__":
    main()
