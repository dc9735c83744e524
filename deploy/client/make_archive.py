#!/usr/bin/env python3
"""Packs the C++ client library: build_defs/cc_archive.bzl runs it.

    traind-client-linux-x86_64/
      include/traind/             the public headers and those of the house that they include
      lib/libtraind_client.a
      lib/pkgconfig/, lib/cmake/  for pkg-config and for CMake's find_package
      share/traind/               the .proto files, and all of them as one set of descriptors
      example/, CPP.md

In installed headers the paths of the house begin with traind/.
"""
import argparse
import gzip
import io
import os
import re
import subprocess
import tarfile
import tempfile

NAME = "traind-client-linux-x86_64"
INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.MULTILINE)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def closure(public, headers):
    """The public headers and all that they include of the house, with their texts as installed."""
    texts, waiting = {}, list(public)
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        text = read(headers[name]).decode()
        own = [path for _, path in INCLUDE.findall(text) if path in headers]
        waiting += own
        texts[name] = INCLUDE.sub(
            lambda match: f'{match[1]}"traind/{match[2]}"' if match[2] in headers else match[0], text)
    return texts


def last_of_each(flags):
    kept = dict.fromkeys(reversed(flags))
    return list(reversed(kept))


def merged(libraries):
    """The members of all libraries as one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "all.a")
        script = "".join([f"create {path}\n", *(f"addlib {library}\n" for library in libraries), "save\nend\n"])
        subprocess.run(["ar", "-M"], input=script, text=True, check=True)
        subprocess.run(["strip", "--strip-debug", "--enable-deterministic-archives", path], check=True)
        return read(path)


def descriptors(protoc, protos):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "set")
        subprocess.run([protoc, "-I.", "-I/usr/include", "--include_imports", "--include_source_info",
                        f"--descriptor_set_out={path}", *protos], check=True)
        return read(path)


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--output")
    parser.add_argument("--protoc")
    for many in ("library", "header", "public", "link", "proto", "file"):
        parser.add_argument(f"--{many}", action="append", default=[])
    options = parser.parse_args()
    headers = dict(header.split("=", 1) for header in options.header)
    files = {os.path.basename(path): path for path in options.file}
    version = re.search(r'"([\d.]+)"', read(files["version.h"]).decode())[1]
    link = last_of_each(options.link)
    words = {"@VERSION@": version, "@LINK@": " ".join(link), "@LINK_LIST@": ";".join(link)}

    def filled(name):
        text = read(files[name]).decode()
        for word, value in words.items():
            text = text.replace(word, value)
        return text.encode()

    content = {f"include/traind/{name}": text.encode() for name, text in closure(options.public, headers).items()}
    content["lib/libtraind_client.a"] = merged(options.library)
    content["lib/pkgconfig/traind-client.pc"] = filled("traind-client.pc.in")
    for part in ("config", "config-version"):
        content[f"lib/cmake/traind-client/traind-client-{part}.cmake"] = filled(f"traind-client-{part}.cmake.in")
    for proto in options.proto:
        content[f"share/traind/{proto}"] = read(proto)
    content["share/traind/traind.protoset"] = descriptors(options.protoc, options.proto)
    content["CPP.md"] = read(files["CPP.md"])
    for path in options.file:
        if path.startswith("examples/cpp/"):
            content["example/" + os.path.basename(path)] = read(path)

    with open(options.output, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as packed, \
            tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(content):
            member = tarfile.TarInfo(f"{NAME}/{name}")
            member.size = len(content[name])
            member.mode = 0o644
            tar.addfile(member, io.BytesIO(content[name]))


if __name__ == "__main__":
    main()
