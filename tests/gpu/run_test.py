"""run.sh tells what failed, what was skipped and why: programs that stand in for those of an archive."""

import json
import os
import shutil
import subprocess
import tempfile

from tests.cases import case, main

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.sh")
PASSES = """
[ RUN      ] CudaTest.Trains
[       OK ] CudaTest.Trains (3 ms)
[ RUN      ] CudaTest.NeedsTwo
a.cc:7: Skipped
needs two GPUs

[  SKIPPED ] CudaTest.NeedsTwo (0 ms)
"""
FAILS = """
[ RUN      ] CudaTest.Trains
a.cc:7: Failure
the loss is 3
[  FAILED  ] CudaTest.Trains (3 ms)
[  FAILED  ] CudaTest.Trains
"""
CRASHES = """
[ RUN      ] CudaTest.Trains
"""
FIGURE = '{"work": "mlp64", "samples_s": 5}'


def run(gpu=True, rank=("", 0), cuda=(PASSES, 0), networks=(PASSES, 0), nccl=(PASSES, 0), bench=(FIGURE, 0)):
    """Returns the exit code, the table's rows as (verdict, program, test, reason), and the figures."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SCRIPT, folder)
        programs = {"trainrank": rank, "cuda_test": cuda, "cuda_networks_test": networks, "nccl_test": nccl, "gpu_bench": bench}
        for name, (text, code) in programs.items():
            path = os.path.join(folder, name)
            with open(path, "w") as out:
                out.write("#!/bin/sh\ncat <<'END'\n%s\nEND\nexit %d\n" % (text, code))
            os.chmod(path, 0o755)
        open(os.path.join(folder, "libtraind_cuda.so"), "w").close()
        if gpu:
            open(os.path.join(folder, "nvidia0"), "w").close()
        ended = subprocess.run(
            [os.path.join(folder, "run.sh"), "--devices", os.path.join(folder, "nvidia[0-9]*")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        rows = [tuple((line.split(None, 3) + [""])[:4]) for line in ended.stdout.splitlines()
                if line[:4] in ("PASS", "FAIL", "SKIP")]
        figures = []
        if os.path.exists(os.path.join(folder, "figures.jsonl")):
            with open(os.path.join(folder, "figures.jsonl")) as lines:
                figures = [json.loads(line) for line in lines]
        return ended.returncode, rows, figures


@case("Without a GPU all is skipped, with the reason")
def _():
    code, rows, _ = run(gpu=False, cuda=(FAILS, 1))
    assert code == 0, rows
    assert len(rows) == 5 and all(row[0] == "SKIP" and row[3] == "no GPU here" for row in rows), rows


@case("Each test has a row, and figures are JSON lines")
def _():
    code, rows, figures = run()
    assert code == 0, rows
    assert ("PASS", "cuda_test", "CudaTest.Trains", "") in rows, rows
    assert ("SKIP", "nccl_test", "CudaTest.NeedsTwo", "needs two GPUs") in rows, rows
    assert figures == [json.loads(FIGURE)], figures


@case("A failed test fails the run, with its reason")
def _():
    code, rows, _ = run(nccl=(FAILS, 1))
    assert code == 1, rows
    assert [row for row in rows if row[0] == "FAIL"] == [
        ("FAIL", "nccl_test", "CudaTest.Trains", "the loss is 3")], rows


@case("A network that fails fails the run")
def _():
    code, rows, _ = run(networks=(FAILS, 1))
    assert code == 1, rows
    assert ("FAIL", "cuda_networks_test", "CudaTest.Trains", "the loss is 3") in rows, rows


@case("A crash fails the run")
def _():
    code, rows, _ = run(cuda=(CRASHES, 139))
    assert code == 1, rows
    assert ("FAIL", "cuda_test", "CudaTest.Trains", "ended with code 139") in rows, rows


@case("A program that ran no test fails the run")
def _():
    code, rows, _ = run(cuda=("", 0))
    assert code == 1, rows
    assert ("FAIL", "cuda_test", "-", "ran no test") in rows, rows


@case("A GPU that a Rank cannot use fails the run")
def _():
    code, rows, _ = run(rank=("the driver is too old", 1))
    assert code == 1, rows
    assert ("FAIL", "trainrank", "check-device", "the driver is too old (code 1)") in rows, rows


@case("A benchmark without figures fails the run")
def _():
    code, rows, _ = run(bench=("skipped: no device", 0))
    assert code == 1, rows
    assert ("FAIL", "gpu_bench", "figures", "skipped: no device (code 0)") in rows, rows


if __name__ == "__main__":
    main()
