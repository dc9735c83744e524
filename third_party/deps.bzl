"""What WORKSPACE declares: Bazel's own dependencies and the libraries."""

load("//third_party:apt.bzl", "absl_repository", "apt_repository", "compiler_version_repository")
load("//third_party:wheels.bzl", "cuda_repository", "torch_repository", "tree_libraries_repository")

def bazel_shims():
    """Stands in for what Bazel 4 would otherwise download for itself.

    Debian's Bazel tells no version. Any other one gets its own from the
    network or from a vendored directory.
    """
    if native.bazel_version:
        return

    # Debian's bazel-rules-cc needs a newer Bazel than Debian's.
    native.local_repository(name = "rules_cc", path = "third_party/shims/rules_cc")
    native.local_repository(name = "remote_coverage_tools", path = "third_party/shims/coverage")
    native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")

def third_party():
    """One repository a library: @NAME//:NAME unless noted."""

    # Targets: a list of flags and dependencies each. "pc:X" stands for the
    # libraries that `pkg-config --libs X` names.
    compiler_version_repository(name = "compiler_version")
    absl_repository(name = "absl")  # @absl//:strings, :status, ... one an Abseil .pc file
    apt_repository(
        name = "protobuf",
        header = "google/protobuf/message.h",
        package = "libprotobuf-dev",
        targets = {"protobuf": ["pc:protobuf"]},
        tools = {"protoc": "/usr/bin/protoc"},
    )
    apt_repository(
        name = "grpc",
        header = "grpcpp/grpcpp.h",
        package = "libgrpc++-dev",
        targets = {
            # The generated code and the inline parts of grpcpp call Abseil
            # directly, and the linker wants each such library by name:
            # pkg-config lists them.
            "grpc++": ["pc:grpc++", "@protobuf"],
            "grpc++_reflection": ["-lgrpc++_reflection", ":grpc++"],
        },
        tools = {"grpc_cpp_plugin": "/usr/bin/grpc_cpp_plugin"},
    )
    apt_repository(
        name = "sqlite3",
        header = "sqlite3.h",
        package = "libsqlite3-dev",
        targets = {"sqlite3": ["pc:sqlite3"]},
    )
    apt_repository(
        name = "openssl",
        header = "openssl/evp.h",
        package = "libssl-dev",
        targets = {"crypto": ["-lcrypto"]},  # SHA-256
    )
    apt_repository(
        name = "zlib",
        header = "zlib.h",
        package = "zlib1g-dev",
        targets = {"zlib": ["-lz"]},  # members of NPZ archives
    )
    apt_repository(
        name = "zstd",
        header = "zstd.h",
        package = "libzstd-dev",
        targets = {"zstd": ["-lzstd"]},  # parts of files on their way
    )
    apt_repository(
        name = "jpeg",
        header = "jpeglib.h",
        package = "libjpeg62-turbo-dev",
        targets = {"jpeg": ["-l:libjpeg.so"]},  # as libtiff.so has it
    )
    apt_repository(
        name = "png",
        header = "png.h",
        package = "libpng-dev",
        targets = {"png": ["-lpng"]},
    )
    apt_repository(
        name = "tiff",
        header = "x86_64-linux-gnu/tiffio.h",
        package = "libtiff-dev",
        # By its file's name, so that it is shared in programs that are linked statically, too.
        targets = {"tiff": ["-l:libtiff.so"]},
    )
    apt_repository(
        name = "sentencepiece",  # links Protobuf: never in a Rank
        header = "sentencepiece_trainer.h",
        package = "libsentencepiece-dev",
        # By the files' names: there are no archives of them.
        targets = {"sentencepiece": ["-l:libsentencepiece.so", "-l:libsentencepiece_train.so"]},
    )
    apt_repository(
        name = "gtest",
        header = "gmock/gmock.h",
        package = "libgmock-dev",
        targets = {
            "gtest": ["-lgmock", "-lgtest", "-lpthread"],
            # gmock_main also runs plain gtest suites.
            "gtest_main": ["-lgmock_main", ":gtest"],
        },
    )
    apt_repository(
        name = "cli11",
        header = "CLI/CLI.hpp",
        package = "libcli11-dev",
        targets = {"cli11": []},
    )
    apt_repository(
        name = "re2",
        header = "re2/re2.h",
        package = "libre2-dev",
        targets = {"re2": ["-lre2"]},
    )
    apt_repository(
        name = "yaml_cpp",
        header = "yaml-cpp/yaml.h",
        package = "libyaml-cpp-dev",
        targets = {"yaml_cpp": ["pc:yaml-cpp"]},
    )
    apt_repository(
        name = "microhttpd",
        header = "microhttpd.h",
        package = "libmicrohttpd-dev",
        targets = {"microhttpd": ["-lmicrohttpd"]},
    )
    apt_repository(
        name = "curl",
        header = "x86_64-linux-gnu/curl/curl.h",
        package = "libcurl4-openssl-dev",
        targets = {"curl": []},  # headers alone: it is opened when it is needed
    )
    apt_repository(
        name = "nlohmann_json",
        header = "nlohmann/json.hpp",
        package = "nlohmann-json3-dev",
        targets = {"nlohmann_json": []},
    )

    apt_repository(
        name = "eigen",
        header = "eigen3/Eigen/Core",
        package = "libeigen3-dev",
        targets = {"eigen": []},
    )

    torch_repository(name = "torch")  # :torch, :torch_cpu, :headers
    tree_libraries_repository(name = "tree_libraries")  # a header that says where they are
    cuda_repository(name = "cuda")  # :cudart, :nccl, :cudnn, :nvml_headers, :headers, :nvcc
