"""The package as pip installs it, and what it repeats of the product."""
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PACKAGE = os.path.dirname(HERE)
sys.path.insert(0, PACKAGE)

import build_backend
import traind
from tests.cases import case, main
from traind.spec import PATH_FIELDS

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER,
                            env={**os.environ, "PYTHONPATH": "", "PIP_CONFIG_FILE": "/dev/null"}, **options)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


def make_venv():
    """The commands pip and python of a new environment."""
    python = os.path.join(FOLDER, "venv/bin/python")
    if importlib.util.find_spec("pip"):  # a pip of its own would take seconds
        run(sys.executable, "-m", "venv", "--without-pip", "venv")
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python], python
    run(sys.executable, "-m", "venv", "venv")
    return [python, "-m", "pip", "--disable-pip-version-check"], python


@case("pip installs the folder without a network, and `import traind` needs nothing else")
def _():
    pip, python = make_venv()
    run(*pip, "install", "--quiet", "--no-index", PACKAGE)
    shown = run(*pip, "show", "-f", "traind")
    assert f"Version: {traind.__version__}" in shown and re.search(r"^Requires: *$", shown, re.MULTILINE), shown
    assert "traind/job.py" in shown and "build_backend" not in shown, shown
    # -I: neither the current folder nor PYTHONPATH helps.
    run(python, "-I", "-W", "error", "-c", "import traind, sys; assert not {'numpy', 'pandas', 'sklearn'} & set(sys.modules)")
    assert run(python, "-I", "-W", "error", "-c", "from traind_run import run; print(run.folds)") == "1\n"
    assert "tensorboard JOB" in run(python, "-I", "-m", "traind", "--help")
    assert run(*pip, "check").startswith("No broken")


@case("The archives of the same files are the same, and the source archive has what a build needs")
def _():
    bytes_of = []
    for name in ("one", "two"):
        os.mkdir(os.path.join(FOLDER, name))
        with open(os.path.join(FOLDER, name, build_backend.build_wheel(os.path.join(FOLDER, name))), "rb") as f:
            bytes_of.append(f.read())
    assert bytes_of[0] == bytes_of[1]
    with tarfile.open(os.path.join(FOLDER, build_backend.build_sdist(FOLDER))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "build_backend.py", "README.md", "PKG-INFO", "traind/__init__.py", "traind_run.py"} <= names, names


@case("The version is that of the C++ client")
def _():
    with open(os.path.join(ROOT, "client/version.h"), encoding="utf-8") as f:
        assert f'"{traind.__version__}"' in f.read()


@case("Every field of a spec that names a file is made absolute here, but for the one that trainctl writes")
def _():
    with open(os.path.join(ROOT, "proto/job.proto"), encoding="utf-8") as f:
        names = re.findall(r"^\s*(?:optional )?string (\w+) = \d+ \[\(rules\) = \{[^}]*path: true", f.read(), re.MULTILINE)
    assert sorted(names) == sorted([path.rpartition(".")[2] for path in PATH_FIELDS] + ["output"]), names


main()
