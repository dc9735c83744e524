"""Each program links only the libraries of its trade (NEEDED entries, by readelf)."""
import os
import re
import subprocess

from tests.cases import case, main

# From the runfiles under Bazel, from bazel-bin by hand.
BIN = os.getcwd() if os.environ.get("TEST_SRCDIR") else os.path.join(os.getcwd(), "bazel-bin")


def needed(program):
    text = subprocess.run(["readelf", "-d", os.path.join(BIN, program)], capture_output=True, text=True,
                          check=True).stdout
    found = re.findall(r"\(NEEDED\).*\[(.*?)\]", text)
    assert "libc.so.6" in found, (program, text)
    return found


def having(program, *stems):
    return [lib for lib in needed(program) if any(lib.startswith(s) for s in stems)]


TORCH = ("libtorch", "libc10", "libcudart", "libnccl", "libcudnn", "libcublas")


@case("A Rank links the CPU part of LibTorch, and neither gRPC nor Protobuf nor SQLite")
def _():
    assert having("worker/trainrank", "libtorch_cpu")
    assert not having("worker/trainrank", "libgrpc", "libprotobuf", "libsentencepiece", "libsqlite", "libyaml")
    assert not having("worker/trainrank", "libtorch_cuda", "libc10_cuda", "libcudart", "libnccl")


@case("No other program links LibTorch or CUDA")
def _():
    for program in ("server/traind", "worker/trainworker", "worker/trainprep", "worker/traintree", "worker/trainprog", "client/trainctl"):
        assert not having(program, *TORCH), having(program, *TORCH)


@case("What trains a fold needs no LibTorch: a program of the tests keeps the contract without it")
def _():
    assert not having("tests/worker/task/share_trainer", *TORCH, "libgrpc", "libprotobuf")


@case("No program links a library of boosted trees, and what trains them neither gRPC nor Protobuf nor SQLite")
def _():
    for program in ("worker/traintree", "worker/trainrank"):
        assert not having(program, "lib_lightgbm", "libxgboost")
    for program in ("worker/traintree", "worker/trainprog"):
        assert not having(program, "libgrpc", "libprotobuf", "libsqlite", "libyaml")


@case("No program has a switch of the tests in it: faults come from libraries that tests load before")
def _():
    for program in ("server/traind", "worker/trainworker", "worker/trainrank", "worker/trainprep", "worker/traintree",
                    "worker/trainprog", "client/trainctl"):
        with open(os.path.join(BIN, program), "rb") as f:
            code = f.read()
        for switch in (b"STORAGE_SHIM", b"STORAGE_ROOT", b"STORAGE_JOURNAL", b"STORAGE_FAULT", b"failpoint"):
            assert switch not in code, (program, switch)


@case("Only the coordinator links SQLite")
def _():
    assert having("server/traind", "libsqlite3")
    for program in ("worker/trainworker", "worker/trainprep", "client/trainctl"):
        assert not having(program, "libsqlite"), program


main()
