"""C++ libraries of this house as one static archive with their headers, for programs of other build systems."""

def _own(label):
    return not label.workspace_name

def _cc_archive_impl(ctx):
    archives = []
    headers = []
    flags = []
    for dep in ctx.attr.deps:
        for inputs in dep[CcInfo].linking_context.linker_inputs.to_list():
            flags += inputs.user_link_flags
            if not _own(inputs.owner):
                continue
            for library in inputs.libraries:
                archive = library.pic_static_library or library.static_library
                if archive and archive not in archives:
                    archives.append(archive)
        for header in dep[CcInfo].compilation_context.headers.to_list():
            if _own(header.owner) and header.extension == "h" and header not in headers:
                headers.append(header)
    protos = ctx.files.protos
    output = ctx.outputs.archive
    arguments = ctx.actions.args()
    arguments.set_param_file_format("multiline")
    arguments.use_param_file("@%s", use_always = True)
    arguments.add("--output", output)
    arguments.add("--protoc", ctx.file._protoc)
    arguments.add_all(archives, format_each = "--library=%s")
    arguments.add_all([h.short_path + "=" + h.path for h in headers], format_each = "--header=%s")
    arguments.add_all(ctx.attr.public, format_each = "--public=%s")
    arguments.add_all(flags, format_each = "--link=%s")
    arguments.add_all(protos, format_each = "--proto=%s")
    arguments.add_all(ctx.files.srcs, format_each = "--file=%s")
    ctx.actions.run(
        executable = ctx.file._maker,
        arguments = [arguments],
        inputs = archives + headers + protos + ctx.files.srcs,
        tools = [ctx.file._protoc],
        outputs = [output],
        mnemonic = "CcArchive",
        progress_message = "Packing " + str(ctx.label),
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

# The archive holds what deploy/client/make_archive.py says.
cc_archive = rule(
    implementation = _cc_archive_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo], mandatory = True),
        "public": attr.string_list(mandatory = True, doc = "Headers to install, with those that they include."),
        "protos": attr.label_list(allow_files = [".proto"]),
        "srcs": attr.label_list(allow_files = True, doc = "Templates, documents and examples."),
        "archive": attr.output(mandatory = True),
        "_maker": attr.label(default = "//deploy/client:make_archive.py", allow_single_file = True, cfg = "exec"),
        "_protoc": attr.label(default = "@protobuf//:bin/protoc", allow_single_file = True, cfg = "exec"),
    },
)
