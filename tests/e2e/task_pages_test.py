"""The pages of docs/tasks do what they say: their specs, programs and commands run against a real traind.

Blocks of a page, in its order:

    ```yaml title="NAME"     a file that the reader writes; so is ```python title="NAME"
    ```sh                    commands that succeed; `traind ... &` starts the daemon
    ```text                  what the commands before print: each line's label must be there, figures may differ
    ```console               `$ COMMAND` fails and prints the lines that follow; ... stands for any text

Budgets are shortened, so that the pages together take less than a minute.
"""
import os
import re
import shlex
import shutil
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, sha256

BUDGET = "4s"
PAGES = "docs/tasks"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.S | re.M)
_ID = re.compile(r"(?<=[a-z])-[a-z0-9]{6}(?= )")
_NUMBER = re.compile(r"\d[\d.e+-]*")
# A short budget leaves nothing.
_OPTIONAL = ("time left",)


def blocks(text):
    """(language, title or None, body) of each fenced block."""
    return [match.groups() for match in _BLOCK.finditer(text)]


def shorter(text, budget=BUDGET):
    text = re.sub(r"(budget: \{time: )\w+", r"\g<1>" + budget, text)
    return re.sub(r"(--budget )\w+", r"\g<1>" + budget, text)


def _pattern(text, figures):
    """A regular expression for a line of a page; with `figures`, those may differ, and so may ids."""
    text = text.replace("...", "\1")
    if figures:
        text = _NUMBER.sub("\3", _ID.sub("-\2", text))
        text = text.replace("PLANNING", "\4")
    marks = {"\1": ".*", "\2": "[a-z0-9]{6}", "\3": r"\d[\d.e+-]*", "\4": "(PLANNING|QUEUED)"}
    return "".join(marks.get(c) or re.escape(c) for c in text)


def _found(pattern, output):
    return re.search(r"^\s*" + pattern, output, re.M)


def missing_labels(block, output):
    """Lines of a ```text block whose label the output lacks."""
    missing = []
    for line in block.splitlines():
        if line.startswith(" " * 14):  # goes on with the line before
            continue
        label = re.split(r" {2,}", line.strip())[0]
        if re.match(r"\d+,[a-z]", label):  # a row of predictions: the class may be another one
            pattern = r"[^,\n]+" + r",[^,\n]+" * label.count(",") + "$"
        else:
            pattern = _pattern(label, figures=True)
        if label not in _OPTIONAL and not _found(pattern, output):
            missing.append(line)
    return missing


def missing_lines(block, output):
    """Lines of a ```console block's output that the output lacks."""
    return [line for line in block.splitlines() if not _found(_pattern(line, figures=False), output)]


class Reader:
    """Somebody who follows a page, in a folder with the examples."""

    def __init__(self, house):
        self.house = house
        self.tools = os.path.join(house.root, "tools")
        os.mkdir(self.tools)
        shutil.copytree("examples", os.path.join(house.data, "examples"),
                        ignore=shutil.ignore_patterns("images", "volumes", "predictions*.csv"))
        self.arguments = os.path.join(house.root, "traind-arguments")
        self._tool("traind", f'printf "%s\\0" "$@" >{shlex.quote(self.arguments)}')
        self._tool("trainctl", f'exec {shlex.quote(os.path.join(house.bin, "client/trainctl"))} "$@"')
        # Under Bazel this file is a link into the workspace.
        tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        self._tool("python", f'exec {shlex.quote(os.path.join(tree, ".deps/venv/bin/python"))} "$@"')

    def _tool(self, name, line):
        path = os.path.join(self.tools, name)
        with open(path, "w") as f:
            f.write(f"#!/bin/bash\n{line}\n")
        os.chmod(path, 0o755)

    def shell(self, commands):
        """(exit code, output) of commands; starts the daemon if they do."""
        environment = {**self.house.environment(), "HOME": self.house.root,
                       "PATH": self.tools + os.pathsep + os.environ["PATH"], "TRAINCTL_SERVER": self.house.server or ""}
        result = subprocess.run(["bash", "-c", f"set -e\n{commands}\nwait\n"], cwd=self.house.data, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if os.path.exists(self.arguments):
            with open(self.arguments) as f:
                words = f.read().split("\0")[:-1]
            os.remove(self.arguments)
            assert words[:2] == ["--standalone", "--state"], words  # House gives these itself
            self.house.start(*words[3:])
        return result.returncode, result.stdout

    def follow(self, page, budget):
        output = ""
        for language, title, body in blocks(page):
            body = shorter(body, budget)
            if title:
                self.house.write(title, body)
            elif language == "sh":
                code, output = self.shell(body)
                assert code == 0, (body, code, output)
            elif language == "text":
                missing = missing_labels(body, output)
                assert not missing, (missing, output)
            elif language == "console":
                command, _, expected = body.partition("\n")
                code, said = self.shell(command.removeprefix("$ "))
                missing = missing_lines(expected, said)
                assert code != 0 and expected and not missing, (command, code, missing, said)
            else:
                raise AssertionError(f"a block of {language} that nobody checks: {body}")


def page_case(name, data, budget=BUDGET):
    @case(f"{name} does what it says: {data}", limit_s=60)
    def _():
        with open(os.path.join(PAGES, name)) as f:
            page = f.read()
        with House(slots=2) as house:
            Reader(house).follow(page, budget)


page_case("tables.md", "a table")
page_case("series.md", "a forecast")
page_case("images.md", "folders of images")
page_case("texts.md", "texts")
page_case("volumes.md", "volumes and masks")
# Its Jobs end early. A part of the budget is what the trial of the module may take, also on a busy machine.
page_case("own_model.md", "a TorchScript module", budget="20s")


@case("The example that own_model.md names trains all of its folds, each at the first try", limit_s=60)
def _():
    with House(slots=2) as house:
        reader = Reader(house)
        house.start("--allow-script", sha256("examples/own_model/model.pt"))
        code, output = reader.shell("trainctl submit examples/own_model/job.yaml --budget 20s --wait")
        assert code == 0, output
        job = house.job("own-model")
        house.check_folds_answer(job)
        assert len(job["folds"]) == 5 and all(f["attempt"] for f in job["folds"]), job["folds"]
        assert "retry" not in output and "INTERNAL" not in output, output


@case("Every page of the folder is followed")
def _():
    with open(os.path.realpath(__file__)) as f:
        followed = re.findall(r'^page_case\("([^"]+)"', f.read(), re.M)
    assert sorted(followed) == sorted(os.listdir(PAGES)), (followed, os.listdir(PAGES))


@case("A page is at most two screens long and has the parts that a reader looks for")
def _():
    for name in os.listdir(PAGES):
        with open(os.path.join(PAGES, name)) as f:
            text = f.read()
        assert text.count("\n") <= 120, (name, text.count("\n"))
        parts = re.findall(r"^## (.*)$", text, re.M)
        assert parts == ["What you need", "The spec", "Run it", "Read the answer", "Make it better", "Usual mistakes",
                         "How it works"], (name, parts)
        spec = [body for language, title, body in blocks(text) if language == "yaml"]
        assert len(spec) == 1, (name, len(spec))


@case("A line that a command no longer prints is noticed; figures and ids may differ")
def _():
    output = "job-abc123 SUCCEEDED  quality FULL\n  score       mae 2.5\n0,yes,0.75\nx.yaml:1:2: error: no column 'a'\n"
    assert missing_labels("job-zzz999 SUCCEEDED  quality FLOOR\n  score       mae 3\n7,no,0.1\n", output) == []
    assert missing_labels("job-zzz999 FAILED\n", output) == ["job-zzz999 FAILED"]
    assert missing_labels("  result      9\n", output) == ["  result      9"]
    assert missing_labels("7,no\n", output) == ["7,no"]
    assert missing_lines("x.yaml:1:2: error: ... 'a'\n", output) == []
    assert missing_lines("x.yaml:1:3: error: ... 'a'\n", output) == ["x.yaml:1:3: error: ... 'a'"]
    assert shorter("budget: {time: 60s}\n--budget 5m\n") == f"budget: {{time: {BUDGET}}}\n--budget {BUDGET}\n"


main()
