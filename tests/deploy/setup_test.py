"""deploy/setup.sh on this machine, and on packages that are not as it wants them."""
import os
import shutil
import subprocess
import tempfile
import time

from tests.cases import Skip, case, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TREES = os.path.realpath(os.path.join(ROOT, ".deps/trees"))
WHEELS = os.path.realpath(os.path.join(ROOT, ".deps/venv"))  # wherever this clone has them


def setup(*arguments, packages=None, system=None, root=ROOT):
    """Runs it; with another list of packages, or on another system, in a clone of its own."""
    if packages is not None or system is not None:
        root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.mkdir(os.path.join(root, "deploy"))
        os.mkdir(os.path.join(root, "third_party"))
        shutil.copy(os.path.join(ROOT, "deploy/setup.sh"), os.path.join(root, "deploy"))
        with open(os.path.join(root, "third_party/apt-packages.txt"), "w") as f:
            f.write(packages or "")
        os.mkdir(os.path.join(root, ".deps"))
        os.symlink(WHEELS, os.path.join(root, ".deps/venv"))
        os.symlink(TREES, os.path.join(root, ".deps/trees"))
    if system is not None:
        with open(os.path.join(root, "os-release"), "w") as f:
            f.write(system)
        script = os.path.join(root, "deploy/setup.sh")
        with open(script) as f:
            text = f.read()
        assert "/etc/os-release" in text
        with open(script, "w") as f:
            f.write(text.replace("/etc/os-release", os.path.join(root, "os-release")))
    return subprocess.run([os.path.join(root, "deploy/setup.sh"), *arguments], capture_output=True, text=True,
                          env={**os.environ, "DEPS_VENV": WHEELS, "DEPS_TREES": TREES})


def known_system():
    with open("/etc/os-release") as f:
        text = f.read()
    if "\nID=debian\n" not in "\n" + text or 'VERSION_ID="12"' not in text:
        raise Skip("not the system that it knows")


@case("With nothing to do it returns within 3 s and says so")
def _():
    known_system()
    begin = time.monotonic()
    result = setup("--check")
    assert result.returncode == 0 and "are installed" in result.stdout, result
    assert time.monotonic() - begin < 3


@case("A system that it does not know is named, with what to do there, and nothing is installed")
def _():
    for system, name in (('ID=debian\nVERSION_ID="13"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n', "trixie"),
                         ('ID=fedora\nVERSION_ID=40\nPRETTY_NAME="Fedora Linux 40"\n', "Fedora Linux 40"),
                         ("ID=debian\nPRETTY_NAME=sid\n", "sid"), ("", "unknown")):
        result = setup(packages="no-such-package-anywhere\n", system=system)
        assert result.returncode == 1 and name in result.stderr, result
        for part in ("Debian 12", "apt-packages.txt", "--skip-apt"):
            assert part in result.stderr, result
        assert result.stdout == "", result


@case("Elsewhere --skip-apt leaves the packages to the user")
def _():
    result = setup("--skip-apt", packages="no-such-package-anywhere\n", system="ID=fedora\n")
    assert result.returncode == 0 and "packages: skipped" in result.stdout, result


@case("A package that is missing is named")
def _():
    known_system()
    result = setup("--check", packages="bash\nno-such-package-anywhere # what for\n")
    assert result.returncode == 1 and "no-such-package-anywhere" in result.stderr, result
    assert "bash" not in result.stderr.replace("/bash", ""), result


@case("A package that is too old is named, one that is new enough is not")
def _():
    known_system()
    result = setup("--check", packages="bash>=1.0\ncoreutils>=999\n")
    assert result.returncode == 1 and "coreutils" in result.stderr and "bash" not in result.stderr, result


@case("An option that is not known is named, with those that are")
def _():
    result = setup("--chekc")
    assert result.returncode == 1 and "--chekc" in result.stderr and "--check" in result.stderr, result


@case("Every wheel is pinned exactly")
def _():
    for file, least in (("requirements.txt", 10), ("tree-requirements.txt", 2)):
        with open(os.path.join(ROOT, "third_party", file)) as f:
            wanted = [line.split("#")[0].strip() for line in f]
        wanted = [w for w in wanted if w]
        assert len(wanted) >= least and all(w.count("==") == 1 for w in wanted), wanted


@case("A folder of trees that lacks LightGBM is named")
def _():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    result = subprocess.run([os.path.join(ROOT, "deploy/setup.sh"), "--skip-apt", "--check"], capture_output=True,
                            text=True, env={**os.environ, "DEPS_VENV": WHEELS, "DEPS_TREES": folder})
    assert result.returncode == 1 and folder in result.stderr and "lightgbm" in result.stderr, result


main()
