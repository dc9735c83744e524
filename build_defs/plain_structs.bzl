"""Plain C++ structs and enums of a .proto file."""

def _descriptors(name, proto, proto_deps):
    native.genrule(
        name = name + "_descriptors",
        srcs = [proto] + proto_deps,
        outs = [name + ".descriptors.pb"],
        cmd = "$(location @protobuf//:bin/protoc) -I. -I/usr/include --include_imports " +
              "--descriptor_set_out=$@ proto/" + name + ".proto",
        tools = ["@protobuf//:bin/protoc"],
    )

# Makes the files, and the library of the enums, which are the first of `outs`.
def _code(name, outs):
    native.cc_library(
        name = name + "_enums",
        hdrs = [outs[0]],
    )
    native.genrule(
        name = name + "_code",
        srcs = [name + ".descriptors.pb"],
        outs = outs,
        cmd = "$(location //build_defs:plain_structs) $(location " + name + ".descriptors.pb) proto/" +
              name + ".proto " + " ".join(["$(location " + out + ")" for out in outs]),
        tools = ["//build_defs:plain_structs"],
    )

def plain_structs(name, proto, proto_deps = [], deps = []):
    """A cc_library with the struct of each message and the tables that JSON is read by; its enums are <name>_enums.

    Args:
      name: of the .proto file without its ending; include the result as "proto/plain/<name>.h".
      proto: the .proto file.
      proto_deps: the .proto files that it imports, directly or not.
      deps: the plain_structs of those with messages of their own.
    """
    _descriptors(name, proto, proto_deps)
    _code(name, [name + "_enums.h", name + ".h", name + ".cc"])
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        deps = deps + [
            ":" + name + "_enums",
            "//common/plain:message_info",
            "@absl//:time",
        ],
    )

def plain_enums(name, proto, proto_deps = []):
    """A cc_library <name>_enums with the enums alone; include it as "proto/plain/<name>_enums.h".

    Args:
      name: as for plain_structs.
      proto: as for plain_structs.
      proto_deps: as for plain_structs.
    """
    _descriptors(name, proto, proto_deps)
    _code(name, [name + "_enums.h"])
