"""The mutation run itself: what it says of mutants, and that the tree stays as it is."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.cases import case, main

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Stands for Bazel: its one test fails where the product says 'worse', does not build where it
# says 'nonsense', and notices nothing else.
BAZEL = r"""#!/usr/bin/env bash
case $1 in
  test) ;;
  build) echo "built" ; exit 0 ;;
  *) exit 0 ;;
esac
if grep -q nonsense product.cc; then echo "an error"; exit 1; fi
mkdir -p bazel-testlogs/tests/product_test
if grep -q worse product.cc; then
  cat > bazel-testlogs/tests/product_test/test.xml <<'XML'
<testsuites><testsuite><testcase name="ItIsGood"><failure/></testcase></testsuite></testsuites>
XML
  exit 3
fi
rm -f bazel-testlogs/tests/product_test/test.xml
"""


class Project:
    """A git repository with one product file and a list of mutants."""

    def __init__(self, mutants):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.write("product.cc", "good and better\nfast\n")
        self.write("mutants.ini", mutants)
        self.bazel = self.write("bazel.sh", BAZEL)
        os.chmod(self.bazel, 0o755)
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)

    def write(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run(self, *arguments):
        """(exit code, JSON lines)."""
        result = subprocess.run(
            [sys.executable, os.path.join(HERE, "mutation.py"), "--mutants", "mutants.ini", *arguments],
            cwd=self.folder, env={**os.environ, "MUTATION_BAZEL": self.bazel}, capture_output=True, text=True)
        assert pathlib.Path(self.folder, "product.cc").read_text(encoding="utf-8") == "good and better\nfast\n"
        return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]


def mutant(name, old, new, tests="//tests:product_test"):
    return f"[{name}]\nfile = product.cc\nold = {old}\nnew = {new}\ntests = {tests}\n"


@case("A mutant that a test notices is caught, and named with the test and its case")
def _():
    code, lines = Project(mutant("bad", "better", "worse")).run()
    assert code == 0 and lines[-1] == {"mutants": 1, "survived": 0}, lines
    assert (lines[0]["mutant"], lines[0]["caught_by"]) == ("bad", "//tests:product_test ItIsGood"), lines


@case("A mutant that no test notices survives, and the run fails")
def _():
    code, lines = Project(mutant("bad", "better", "worse") + mutant("slow", "fast", "slow")).run()
    assert code == 1 and lines[-1] == {"mutants": 2, "survived": 1}, lines
    assert lines[1]["mutant"] == "slow" and lines[1]["caught_by"] is None, lines


@case("An old text that is not there, or is there twice, is an error before anything is built")
def _():
    for old in ("best", "t"):
        code, lines = Project(mutant("lost", old, "worse")).run("--check")
        assert code == 2 and "times, not once" in lines[0]["error"], lines
        assert lines[-1] == {"mutants": 1, "errors": 1}, lines


@case("A mutant that does not build is an error, not a bug that was caught")
def _():
    code, lines = Project(mutant("odd", "fast", "nonsense")).run()
    assert code == 2 and "does not build" in lines[0]["error"] and lines[-1]["errors"] == 1, lines


@case("Tests that fail without a mutant say nothing about any")
def _():
    project = Project(mutant("bad", "fast", "worse"))
    project.write("bazel.sh", "#!/bin/sh\n[ $1 = test ] && exit 3 || exit 0\n")
    code, lines = project.run()
    assert code == 2 and lines == [], lines


@case("A table of results takes the place of the one before, and words in front of it stay")
def _():
    project = Project(mutant("bad", "better", "worse"))
    project.write("table.md", "# Mutants\n\nWords.\n\n| mutant |\n| old |\n")
    project.run("--table", "table.md")
    text = pathlib.Path(project.folder, "table.md").read_text(encoding="utf-8")
    assert text.startswith("# Mutants\n\nWords.\n\n| mutant | "), text
    assert "| bad | product.cc: `better` becomes `worse` | //tests:product_test ItIsGood |" in text, text
    assert "| old |" not in text, text


@case("Every mutant of the project is one line that stands there once")
def _():
    code = subprocess.run(["tests/mutation/run.sh", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert code.returncode == 0, code.stdout
    assert json.loads(code.stdout.splitlines()[-1])["mutants"] >= 25, code.stdout


main()
