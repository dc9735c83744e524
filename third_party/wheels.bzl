"""Repository rules for libraries that come out of Python wheels.

deploy/setup.sh installs the wheels into a virtual environment and links it at
.deps/venv. Headers are symlinked into the repository, so Bazel tracks them.
Libraries are linked by their absolute path and found at run time through an
rpath: their own $ORIGIN-relative paths work only where pip put them.
"""

load("//third_party:apt.bzl", "HEADER", "cc_library_text")

def _site_packages(rctx):
    venv = str(rctx.path(Label("//:WORKSPACE")).dirname) + "/.deps/venv"
    lib = rctx.path(venv + "/lib")
    if not lib.exists:
        fail(venv + " is missing: run deploy/setup.sh first.")
    for entry in lib.readdir():
        if entry.basename.startswith("python3"):
            # realpath, so that clones which share an environment share
            # action keys too
            return str(entry.get_child("site-packages").realpath)
    fail("no lib/python3* under " + venv)

def _rpath(folders):
    return [flag for f in folders for flag in ["-L" + f, "-Wl,-rpath," + f]]

def _headers_text(name, hdrs, includes, defines = [], deps = []):
    return """cc_library(
    name = "{}",
    hdrs = glob({}),
    includes = {},
    defines = {},
    deps = {},
)
""".format(name, repr(hdrs), repr(includes), repr(defines), repr(deps))

def _link_all(rctx, source, target, keep):
    """Symlinks source/X at target/X for each X in keep that is there."""
    for name in keep:
        if rctx.path(source + "/" + name).exists:
            rctx.symlink(source + "/" + name, target + "/" + name)

# Of torch/include. Left out: google/ (an old Protobuf that would shadow the
# system's), pybind11/ and what only torch's own build uses.
_TORCH_INCLUDE = ["ATen", "c10", "caffe2", "fmt", "torch"]

def _torch_repository_impl(rctx):
    site = _site_packages(rctx)
    torch = site + "/torch"
    if not rctx.path(torch + "/lib/libtorch_cuda.so").exists:
        fail(torch + " is missing or has no CUDA part: run deploy/setup.sh.")
    _link_all(rctx, torch + "/include", "include", _TORCH_INCLUDE)
    text = HEADER
    text += _headers_text(
        "headers",
        ["include/**/*.h", "include/**/*.hpp", "include/**/*.cuh"],
        ["include", "include/torch/csrc/api/include"],
        # As torch itself was built: these guard the process group classes.
        ["USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_C10D_NCCL"],
    )

    # The sub-libraries by name: libtorch.so is an empty library that needs
    # them, and code that links to it alone leaves out libc10.so.
    cpu = ["-ltorch_cpu", "-lc10"]
    text += cc_library_text("torch_cpu", _rpath([torch + "/lib"]) + cpu, [":headers"])
    text += cc_library_text(
        "torch",
        # Nothing may refer to the CUDA libraries by symbol; they register
        # themselves when loaded.
        _rpath([torch + "/lib"]) +
        ["-Wl,--push-state,--no-as-needed", "-ltorch_cuda", "-lc10_cuda", "-Wl,--pop-state"] + cpu,
        [":headers", "@cuda//:cuda_headers", "@cuda//:cudart", "@cuda//:nccl"],
    )
    rctx.file("BUILD.bazel", text)

torch_repository = repository_rule(
    implementation = _torch_repository_impl,
    local = True,
)

_NVCC = """#!/bin/sh
exec {}/bin/nvcc "$@"
"""

def _cuda_repository_impl(rctx):
    site = _site_packages(rctx)
    nvidia = site + "/nvidia"
    cuda = nvidia + "/cu13"
    for needed in [cuda + "/include/cuda_runtime.h", cuda + "/bin/nvcc", cuda + "/include/nvml.h"]:
        if not rctx.path(needed).exists:
            fail(needed + " is missing: run deploy/setup.sh.")
    rctx.symlink(cuda + "/include", "include")
    rctx.symlink(nvidia + "/nccl/include", "nccl/include")
    rctx.symlink(nvidia + "/cudnn/include", "cudnn/include")
    rctx.file("bin/nvcc", _NVCC.format(cuda), executable = True)
    text = HEADER
    text += 'exports_files(["bin/nvcc"])\nalias(name = "nvcc", actual = "bin/nvcc")\n'
    text += _headers_text(
        "cuda_headers",
        ["include/*.h", "include/*.hpp", "include/crt/**", "include/cooperative_groups/**", "include/nvtx3/**", "include/nv/**"],
        ["include"],
    )
    text += _headers_text("cccl_headers", ["include/cccl/**"], ["include/cccl"], [], [":cuda_headers"])
    text += _headers_text("nvml_headers", ["include/nvml.h"], ["include"])

    # The wheels carry libX.so.N without the libX.so that -lX looks for.
    text += cc_library_text("cudart", _rpath([cuda + "/lib"]) + ["-l:libcudart.so.13"], [":cuda_headers"])
    text += _headers_text("nccl_headers", ["nccl/include/*.h"], ["nccl/include"], [], [":cuda_headers"])
    text += cc_library_text("nccl", _rpath([nvidia + "/nccl/lib"]) + ["-l:libnccl.so.2"], [":nccl_headers"])
    text += _headers_text("cudnn_headers", ["cudnn/include/*.h"], ["cudnn/include"], [], [":cuda_headers"])
    text += cc_library_text("cudnn", _rpath([nvidia + "/cudnn/lib"]) + ["-l:libcudnn.so.9"], [":cudnn_headers"])
    rctx.file("BUILD.bazel", text)

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    local = True,
)

def _tree_libraries_repository_impl(rctx):
    trees = rctx.path(str(rctx.path(Label("//:WORKSPACE")).dirname) + "/.deps/trees")

    # The build needs nothing of them: programs open them at run time, and say where they looked.
    path = str(trees.realpath) if trees.exists else ""
    pinned = rctx.read(Label("//third_party:tree-requirements.txt")).split("\n")
    versions = dict([line.split("==") for line in pinned if "==" in line])
    lines = ["#pragma once", "", "// Where deploy/setup.sh has put the libraries of boosted trees, and their versions."]
    lines.append("#define TREE_LIBRARIES_DIR \"{}\"".format(path))
    lines.append("#define LIGHTGBM_VERSION \"{}\"".format(versions["lightgbm"]))
    lines.append("#define XGBOOST_VERSION \"{}\"".format(versions["xgboost-cpu"]))
    rctx.file("tree_libraries.h", "\n".join(lines) + "\n")
    rctx.file("BUILD.bazel", HEADER + _headers_text("tree_libraries", ["tree_libraries.h"], ["."]))

tree_libraries_repository = repository_rule(
    implementation = _tree_libraries_repository_impl,
    local = True,
)
