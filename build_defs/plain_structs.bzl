"""Plain C++ structs of the messages of a .proto file."""

def plain_structs(name, proto, proto_deps = [], deps = []):
    """A cc_library with the struct of each message and the tables that JSON is read by.

    Args:
      name: of the .proto file without its ending; include the result as "proto/plain/<name>.h".
      proto: the .proto file.
      proto_deps: the .proto files that it imports, directly or not.
      deps: the plain_structs of those with messages of their own.
    """
    path = "proto/" + name + ".proto"
    native.genrule(
        name = name + "_descriptors",
        srcs = [proto] + proto_deps,
        outs = [name + ".descriptors.pb"],
        cmd = "$(location @protobuf//:bin/protoc) -I. -I/usr/include --include_imports " +
              "--descriptor_set_out=$@ " + path,
        tools = ["@protobuf//:bin/protoc"],
    )
    native.genrule(
        name = name + "_code",
        srcs = [name + ".descriptors.pb"],
        outs = [name + ".h", name + ".cc"],
        cmd = "$(location //build_defs:plain_structs) $(location " + name + ".descriptors.pb) " +
              path + " $(location " + name + ".h) $(location " + name + ".cc)",
        tools = ["//build_defs:plain_structs"],
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        deps = deps + [
            "//common/plain:message_info",
            "@absl//:time",
        ],
    )
