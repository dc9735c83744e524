"""The release that deploy/package.sh makes: what is in it, and where its programs find their libraries."""
import json
import os
import re
import subprocess
import tarfile
import tempfile

from tests.cases import case, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PROGRAMS = {"traind", "trainworker", "trainprep", "traintree", "trainprog", "trainrank", "trainctl", "libtraind_cuda.so"}
# Every Debian has its C library.
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|util|resolv)\.so\.\d+|ld-linux-x86-64\.so\.2)$")
# In the wheels of libtorch-cpu.txt and, for the CUDA part, of libtorch-cuda.txt.
TORCH = {"libtorch_cpu.so", "libc10.so"}
TORCH_CUDA = TORCH | {"libtorch_cuda.so", "libc10_cuda.so", "libcudart.so.13", "libnccl.so.2"}


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


def unpacked():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    archive = os.path.join(folder, "release.tar.gz")
    run(os.path.join(ROOT, "deploy/package.sh"), "--bin", os.getcwd(), "--output", archive)
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return os.path.join(folder, "traind-linux-x86_64")


def dynamic(path):
    """(names of the libraries it needs, its rpath)"""
    text = run("readelf", "-d", path)
    rpath = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text)), rpath[0] if rpath else ""


RELEASE = unpacked()


def path(*parts):
    return os.path.join(RELEASE, *parts)


@case("The release holds the programs, the documents, the examples and what gets LibTorch")
def _():
    assert set(os.listdir(path("bin"))) == PROGRAMS, os.listdir(path("bin"))
    for name in ("README.md", "docs/OPERATIONS.md", "docs/SPEC.md", "examples/digits/job.yaml",
                 "examples/digits/train.csv", "python/traind-0.1.0-py3-none-any.whl", "deploy/container/compose.yaml",
                 "deploy/provision/traind-provision", "deploy/kubernetes/lent-worker.json", "get-libtorch.sh",
                 "licenses/libgrpc++1.51"):
        assert os.path.getsize(path(name)) > 0, name
    for script in ["get-libtorch.sh"] + ["bin/" + p for p in PROGRAMS]:
        assert os.access(path(script), os.X_OK), script


@case("The bill of materials names each library in the release, and what was linked and is fetched, with versions")
def _():
    with open(path("sbom.spdx.json")) as f:
        bill = json.load(f)
    packages = {p["SPDXID"]: p for p in bill["packages"]}
    assert len(packages) == len(bill["packages"]), "an SPDXID stands twice"
    assert all(p["versionInfo"] for p in packages.values())
    related = {(r["relationshipType"], r["spdxElementId"], r["relatedSpdxElement"]) for r in bill["relationships"]}
    assert all(end in packages or end == "SPDXRef-DOCUMENT" for _, *ends in related for end in ends)
    contained = {packages[to]["name"] for kind, _, to in related if kind == "CONTAINS"}
    licensed = set(os.listdir(path("licenses"))) - {"lightgbm", "xgboost_cpu"}
    assert licensed and licensed <= contained, licensed - contained
    assert {"lightgbm", "xgboost-cpu"} <= contained, contained
    needed = {packages[of]["name"]: kind for kind, of, _ in related if kind.endswith("_OF")}
    assert needed["torch"] == "RUNTIME_DEPENDENCY_OF" and needed["libsqlite3-dev"] == "BUILD_DEPENDENCY_OF", needed


@case("Every library that a program needs is in the release, in LibTorch, or in every Debian")
def _():
    inside = set(os.listdir(path("lib")))
    assert any(name.startswith("libgrpc++") for name in inside), inside
    files = [("bin/" + name, TORCH_CUDA if name == "libtraind_cuda.so" else TORCH if name == "trainrank" else set())
             for name in PROGRAMS]
    for file, torch in files + [("lib/" + name, set()) for name in inside]:
        needed, _ = dynamic(path(file))
        strange = {n for n in needed if n not in inside and n not in torch and not SYSTEM.match(n)}
        assert not strange, (file, strange)


@case("The libraries of boosted trees are in the release, and find all that they need there or in every Debian")
def _():
    for file in ("trees/lightgbm/lib/lib_lightgbm.so", "trees/xgboost/lib/libxgboost.so"):
        inside = set(os.listdir(path("lib"))) | set(os.listdir(path("trees/xgboost_cpu.libs")))
        needed, _ = dynamic(path(file))
        assert not {n for n in needed if n not in inside and not SYSTEM.match(n)}, (file, needed)
    assert os.path.getsize(path("trees/lightgbm/VERSION.txt")) > 0


@case("Programs and libraries look for others in the release alone")
def _():
    for folder in ("bin", "lib"):
        for name in os.listdir(path(folder)):
            _, rpath = dynamic(path(folder, name))
            assert rpath and all(part.startswith("$ORIGIN") for part in rpath.split(":")), (name, rpath)


@case("The programs carry no symbols for a debugger")
def _():
    for name in PROGRAMS:
        assert ".symtab" not in run("readelf", "-S", "--wide", path("bin", name)), name


@case("The wheels are those of the build: torch and what its CPU part loads, and for CUDA all that it names")
def _():
    with open(os.path.join(ROOT, "third_party/requirements.txt")) as f:
        pinned = [line.strip() for line in f if re.match(r"[a-z]", line)]
    with open(path("libtorch-cpu.txt")) as f:
        cpu = f.read().split()
    with open(path("libtorch-cuda.txt")) as f:
        cuda = f.read().split()
    assert [c.split("==")[0] for c in cpu] == ["torch", "nvidia-cuda-cupti", "nvidia-cuda-runtime"], cpu
    assert set(cpu) < set(cuda) < set(pinned) and any(c.startswith("nvidia-nccl") for c in cuda), cuda


@case("A folder without LibTorch, or with another version of it, is refused with the version that is wanted")
def _():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    script = [path("get-libtorch.sh"), "--libtorch", folder]
    result = subprocess.run(script, capture_output=True, text=True)
    assert result.returncode == 1 and "libtorch_cpu.so" in result.stderr, result
    os.makedirs(os.path.join(folder, "torch/lib"))
    open(os.path.join(folder, "torch/lib/libtorch_cpu.so"), "w").close()
    result = subprocess.run(script, capture_output=True, text=True)
    assert result.returncode == 1 and "torch 2." in result.stderr, result
    assert not os.path.exists(path("libtorch"))


@case("With the folder of the wheels it runs: every library is found, and the programs tell their usage")
def _():
    wheels = os.path.join(ROOT, ".deps/venv/lib")
    site = os.path.join(wheels, next(p for p in os.listdir(wheels) if p.startswith("python3")), "site-packages")
    assert "is ready" in run(path("get-libtorch.sh"), "--libtorch", site)
    for name in PROGRAMS:
        found = run("ldd", path("bin", name))
        assert "not found" not in found, found
        for library, place in re.findall(r"(\S+) => (\S+)", found):
            assert place.startswith((RELEASE, os.path.realpath(site))) or SYSTEM.match(library), (name, library, place)
    assert "submit" in run(path("bin/trainctl"), "--help")
    assert "--standalone" in run(path("bin/traind"), "--help")


def debian_package():
    """The package that deploy/debian.sh makes of the release, unpacked, and its control files."""
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    package = os.path.join(folder, "traind.deb")
    run(os.path.join(ROOT, "deploy/debian.sh"), "--release", RELEASE, "--output", package, "--level", "0")
    run("dpkg-deb", "-R", package, os.path.join(folder, "root"))
    return package, os.path.join(folder, "root")


PACKAGE, INSTALLED = debian_package()


@case("The Debian package has the programs, units that systemd takes, and settings that an upgrade leaves alone")
def _():
    package, root = PACKAGE, INSTALLED
    assert run("dpkg-deb", "-f", package, "Architecture").strip() == "amd64"
    assert "libc6" in run("dpkg-deb", "-f", package, "Depends")
    for name in ("traind", "trainctl", "trainworker"):
        link = os.path.join(root, "usr/bin", name)
        assert os.path.islink(link) and os.access(link, os.X_OK), link
        assert "Usage" in run(link, "--help"), name
    with open(os.path.join(root, "DEBIAN/conffiles")) as f:
        assert f.read().split() == ["/etc/default/traind", "/etc/default/trainworker"]
    assert run("md5sum", "--quiet", "-c", "DEBIAN/md5sums", cwd=root) == ""
    for script in ("postinst", "prerm", "postrm"):
        run("sh", "-n", os.path.join(root, "DEBIAN", script))
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", package).splitlines()}
    assert owners == {"root/root"}, owners


@case("The flags in the units' settings are flags that the programs know")
def _():
    root = INSTALLED
    for name, program, fixed in (("traind", "traind", ["--state"]), ("trainworker", "trainworker", ["--state"])):
        with open(os.path.join(root, "etc/default", name)) as f:
            flags = re.findall(r'^TRAIN\w+_FLAGS="(.*)"$', f.read(), re.MULTILINE)[0].split()
        usage = run(os.path.join(root, "usr/bin", program), "--help")
        for flag in fixed + [f for f in flags if f.startswith("--")]:
            assert re.search(rf"{flag}\b", usage), (flag, usage)
        with open(os.path.join(root, "usr/lib/systemd/system", f"{name}.service")) as f:
            unit = f.read()
        assert f"ExecStart=/usr/bin/{program} --state" in unit and f"EnvironmentFile=-/etc/default/{name}" in unit


main()
