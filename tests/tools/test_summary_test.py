"""The counting of test cases: what did not run must not look like a success."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.cases import case, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PASS = '<testcase classname="A" name="one"/>'
FAIL = '<testcase classname="A" name="two"><failure message="no"/></testcase>'
SKIP = '<testcase classname="A" name="three"><skipped message="t.cc:7&#x0A;no GPU"/></testcase>'
DISABLED = '<testcase classname="A" name="four" status="notrun"/>'


class Run:
    """A made-up `bazel test`, as its event file tells it."""

    def __init__(self, folder):
        self.folder = folder
        self.events = []

    def test(self, label, status, xml=None, attempt=1):
        outputs = []
        if xml is not None:
            path = os.path.join(self.folder, f"{len(self.events)}.xml")
            pathlib.Path(path).write_text(xml)
            outputs = [{"name": "test.xml", "uri": "file://" + path}]
        self.events.append({"id": {"testResult": {"label": label, "run": 1, "shard": 1, "attempt": attempt}},
                            "testResult": {"status": status, "testActionOutput": outputs}})
        return self

    def cases(self, label, status, *cases, **more):
        return self.test(label, status, f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>", **more)

    def unbuilt(self, label):
        self.events.append({"id": {"targetCompleted": {"label": label}}, "completed": {"success": False}})
        return self

    def finish(self, name="SUCCESS"):
        self.events.append({"id": {"buildFinished": {}}, "finished": {"exitCode": {"name": name}}})
        path = os.path.join(self.folder, "events.json")
        pathlib.Path(path).write_text("\n".join(map(json.dumps, self.events)) + "\n")
        result = subprocess.run([sys.executable, os.path.join(ROOT, "tools/test_summary.py"), path],
                                capture_output=True, text=True)
        return result.returncode, result.stdout.strip().split("\n")


def run():
    return Run(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


@case("Cases are counted, not targets, and skipped ones are named with their reason")
def _():
    code, lines = run().cases("//a", "PASSED", PASS, PASS).cases("//b", "PASSED", PASS, SKIP, DISABLED).finish()
    assert (code, lines) == (0, ["SKIPPED //b A.three: no GPU", "SKIPPED //b A.four: disabled",
                                 "3 passed, 0 failed, 2 skipped"]), (code, lines)


@case("What failed is named behind what was skipped")
def _():
    code, lines = run().cases("//a", "FAILED", FAIL).cases("//b", "PASSED", SKIP).finish("TESTS_FAILED")
    assert (code, [line.split()[0] for line in lines]) == (1, ["SKIPPED", "FAILED", "0"]), (code, lines)


@case("A failed case is named and counted")
def _():
    code, lines = run().cases("//a", "FAILED", PASS, FAIL).finish("TESTS_FAILED")
    assert code == 1 and lines[-1] == "1 passed, 1 failed" and "//a A.two" in lines[0], lines


@case("A crash that left good-looking cases is a failure, and so is one that left none")
def _():
    assert run().cases("//a", "FAILED", PASS).finish("TESTS_FAILED")[1][-1] == "0 passed, 1 failed"
    assert run().cases("//a", "TIMEOUT", PASS).finish("TESTS_FAILED")[1][-1] == "0 passed, 1 failed"
    assert run().test("//a", "FAILED", "<testsui").finish("TESTS_FAILED")[1][-1] == "0 passed, 1 failed"
    assert run().test("//a", "PASSED").finish()[1][-1] == "1 passed, 0 failed"


@case("What was not built, and a build that did not load, are failures")
def _():
    code, lines = run().cases("//a", "PASSED", PASS).unbuilt("//b").finish("BUILD_FAILURE")
    assert code == 1 and lines == ["FAILED //b did not build", "1 passed, 1 failed"], lines
    code, lines = run().finish("COMMAND_LINE_ERROR")
    assert code == 1 and lines[-1] == "0 passed, 1 failed", lines


@case("Nothing at all is no success")
def _():
    assert run().finish() == (1, ["0 passed, 0 failed"])


@case("The last attempt of a flaky test counts")
def _():
    code, lines = run().cases("//a", "FAILED", FAIL).cases("//a", "PASSED", PASS, attempt=2).finish()
    assert (code, lines[-1]) == (0, "1 passed, 0 failed"), lines


main()
