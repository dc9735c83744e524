"""CUDA code: .cu files to objects with nvcc, linked in as a cc_library."""

# Machine code for Turing, Ampere and Hopper, and PTX that newer devices compile at load.
DEFAULT_ARCHS = ["sm_75", "sm_80", "sm_90", "compute_90"]

def _gencode(archs):
    flags = []
    for arch in archs:
        virtual = "compute_" + arch.split("_")[1]
        flags += ["-gencode", "arch={},code={}".format(virtual, arch)]
    return flags

def _nvcc_objects_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [d[CcInfo] for d in ctx.attr.deps],
    ).compilation_context
    objects = []
    for src in ctx.files.srcs:
        obj = ctx.actions.declare_file("{}_objs/{}.o".format(ctx.label.name, src.basename[:-len(".cu")]))
        args = ctx.actions.args()
        args.add("-c", src)
        args.add("-o", obj)
        args.add("-std=c++17")
        args.add_all(["-Xcompiler", "-fPIC"])
        args.add("-g" if ctx.var["COMPILATION_MODE"] == "dbg" else "-O3")
        args.add_all(_gencode(ctx.attr.archs))
        args.add("-I.")
        args.add("-I" + ctx.bin_dir.path)
        args.add_all(context.includes, before_each = "-I")
        args.add_all(context.system_includes, before_each = "-isystem")
        args.add_all(context.defines, before_each = "-D")
        args.add_all(ctx.attr.copts)
        ctx.actions.run(
            executable = ctx.file._nvcc,
            arguments = [args],
            inputs = depset([src] + ctx.files.hdrs, transitive = [context.headers]),
            outputs = [obj],
            mnemonic = "NvccCompile",
            progress_message = "Compiling " + src.short_path,
            use_default_shell_env = True,
        )
        objects.append(obj)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"], mandatory = True),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "archs": attr.string_list(default = DEFAULT_ARCHS),
        "_nvcc": attr.label(default = "@cuda//:bin/nvcc", allow_single_file = True, cfg = "exec"),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], archs = DEFAULT_ARCHS, **kwargs):
    """A cc_library whose sources are CUDA; it builds and links without a GPU.

    Args:
      name: of the library.
      srcs: .cu files.
      hdrs: headers that describe what srcs define, for host code to include.
      deps: cc_library targets.
      copts: flags for nvcc.
      archs: sm_XX for machine code, compute_XX for PTX.
      **kwargs: passed to cc_library.
    """
    objects = name + "_nvcc"
    all_deps = deps + ["@cuda//:cudart"]
    _nvcc_objects(name = objects, srcs = srcs, hdrs = hdrs, deps = all_deps, copts = copts, archs = archs)
    native.cc_library(name = name, srcs = [objects], hdrs = hdrs, deps = all_deps, **kwargs)
