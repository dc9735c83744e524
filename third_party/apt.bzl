"""Repository rules for libraries that the distribution's packages install.

Their headers lie in /usr/include, which the C++ toolchain searches by itself,
so a target is no more than the libraries to link. Bazel does not see those
headers: the package's version goes into a define, so that an upgrade rebuilds
what depends on it.
"""

def _pkg_config(rctx, args):
    result = rctx.execute(["pkg-config"] + args)
    if result.return_code != 0:
        fail("pkg-config {}: {}\nRun deploy/setup.sh first.".format(" ".join(args), result.stderr.strip()))
    return result.stdout.strip()

def last_of_each(flags):
    """The flags less their repetitions; the last of each stays, as linkers want."""
    seen = {}
    kept = []
    for flag in reversed(flags):
        if flag not in seen:
            seen[flag] = True
            kept.append(flag)
    return reversed(kept)

def cc_library_text(name, linkopts = [], deps = [], extra = ""):
    return """cc_library(
    name = "{}",
    linkopts = {},
    deps = {},
{})
""".format(name, repr(linkopts), repr(deps), extra)

HEADER = 'package(default_visibility = ["//visibility:public"])\n'

def _apt_repository_impl(rctx):
    if not rctx.path("/usr/include/" + rctx.attr.header).exists:
        fail("/usr/include/{} is missing: run deploy/setup.sh (package {}).".format(
            rctx.attr.header,
            rctx.attr.package,
        ))
    text = HEADER
    result = rctx.execute(["dpkg-query", "-W", "-f=${Version}", rctx.attr.package])
    version = "".join([
        c if c.isalnum() else "_"
        for c in result.stdout.elems()
    ]) if result.return_code == 0 else "unknown"
    defines = '    defines = ["THIRD_PARTY_{}_VERSION={}"],\n'.format(rctx.name.upper(), "v" + version)
    extra = defines
    for name, parts in rctx.attr.targets.items():
        linkopts = []
        deps = []
        for part in parts:
            if part.startswith("pc:"):
                flags = _pkg_config(rctx, ["--libs-only-l", part[3:]]).split(" ")
                linkopts += last_of_each([f for f in flags if f])
            elif part.startswith("-"):
                linkopts.append(part)
            else:
                deps.append(part)
        text += cc_library_text(name, linkopts, deps, extra)
    for name, path in rctx.attr.tools.items():
        if not rctx.path(path).exists:
            fail(path + " is missing: run deploy/setup.sh.")
        rctx.symlink(path, "bin/" + name)
        text += 'alias(name = "{}", actual = "bin/{}")\nexports_files(["bin/{}"])\n'.format(name, name, name)
    rctx.file("BUILD.bazel", text)

apt_repository = repository_rule(
    implementation = _apt_repository_impl,
    attrs = {
        "header": attr.string(mandatory = True, doc = "A header that tells the package is there."),
        "package": attr.string(mandatory = True),
        "targets": attr.string_list_dict(mandatory = True),
        "tools": attr.string_dict(),
    },
    local = True,
)

def _absl_repository_impl(rctx):
    found = _pkg_config(rctx, ["--variable=pcfiledir", "absl_base"])
    text = HEADER
    for pc in rctx.path(found).readdir():
        if not pc.basename.startswith("absl_") or not pc.basename.endswith(".pc"):
            continue
        linkopts = []
        deps = []
        for line in rctx.read(pc).split("\n"):
            if line.startswith("Libs:"):
                linkopts = [f for f in line[5:].split(" ") if f.startswith("-l") or f.startswith("-Wl,")]
            elif line.startswith("Requires:"):
                deps = [":" + r.strip().split(" ")[0][5:] for r in line[9:].split(",") if r.strip()]
        text += cc_library_text(pc.basename[5:-3], linkopts, last_of_each(deps))
    rctx.file("BUILD.bazel", text)

absl_repository = repository_rule(implementation = _absl_repository_impl, local = True)

def _compiler_version_impl(rctx):
    result = rctx.execute([rctx.os.environ.get("CC", "gcc"), "--version"])
    rctx.file("BUILD.bazel", "")
    rctx.file("version.bzl", "COMPILER_VERSION = {}\n".format(repr(result.stdout.split("\n")[0])))

# The C++ compiler's version with that of its package, for actions whose results no other compiler may read.
compiler_version_repository = repository_rule(
    implementation = _compiler_version_impl,
    environ = ["CC"],
    local = True,
)
