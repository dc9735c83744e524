"""Precompiled headers (GCC): what nearly every file includes is parsed once a build instead of once a file."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@compiler_version//:version.bzl", "COMPILER_VERSION")

def _cc_pch_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include {}\n".format(h) for h in ctx.attr.headers]))
    gch = ctx.actions.declare_file(ctx.label.name + ".h.gch")

    # With them the precompiled form knows its own headers, and -fpch-deps tells them to Bazel for each file.
    dependencies = ctx.actions.declare_file(ctx.label.name + ".h.d")
    toolchain = find_cpp_toolchain(ctx)
    context = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).compilation_context
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = gch.path,
        # Flags must be those of the files that use it: GCC refuses another's.
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + [
            "-x",
            "c++-header",
            "-MD",
            "-MF",
            dependencies.path,
        ],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    action = ACTION_NAMES.cpp_compile
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = action),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        # GCC refuses what another of its versions made, so the version is part of the action's key.
        env = {"COMPILER_VERSION": COMPILER_VERSION},
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [gch, dependencies],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling headers: " + ctx.label.name,
    )
    return [
        DefaultInfo(files = depset([header, gch])),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([header, gch]))),
    ]

cc_pch = rule(
    doc = "Precompiles a header that includes `headers`; //build_defs:cc.bzl has the compiler read it before a file.",
    implementation = _cc_pch_impl,
    attrs = {
        "headers": attr.string_list(mandatory = True, doc = "As after #include, with their brackets or quotes."),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
