"""What holds of the page's files without a browser; and their pure functions, tested by node."""
import glob
import gzip
import os
import re
import subprocess

from tests.cases import Skip, case, main

# Of all files together, as traind sends them.
MOST_BYTES = 150 * 1024
SERVED = (".html", ".js", ".css", ".svg")


def files():
    return sorted(path for path in glob.glob("page/*") if path.endswith(SERVED))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


@case("All files of the page together are at most 150 KB, gzipped")
def _():
    total = 0
    for path in files():
        with open(path, "rb") as f:
            total += len(gzip.compress(f.read(), 9, mtime=0))
    assert len(files()) > 15, files()
    assert total <= MOST_BYTES, total


@case("The page names no other host and has no script or style in its HTML")
def _():
    for path in files():
        hosts = set(re.findall(r"""(?:https?:)?//([\w.-]+\.\w+)""", read(path))) - {"www.w3.org"}
        assert not hosts, f"{path}: {hosts}"
    html = read("page/index.html")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html), html


@case("Text reaches the document as text: no file of the page makes HTML of strings")
def _():
    for path in files():
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", read(path))
        assert not found, f"{path}: {found}"


@case("index.html preloads each module, so that none waits for another one")
def _():
    html = read("page/index.html")
    named = set(re.findall(r'="/assets/(\w+\.js)"', html))
    assert named == {os.path.basename(path) for path in files() if path.endswith(".js")}, named


def node():
    """The command that runs modules named .js; Skip where there is none."""
    try:
        command = ["node", "--experimental-default-type=module"]
        if subprocess.run(command + ["-e", ""], capture_output=True, check=False).returncode == 0:
            return command
    except FileNotFoundError:
        raise Skip("node is not installed (apt-get install nodejs)") from None
    raise Skip("node is older than 18.19")


def run_by_node(path):
    run = subprocess.run(node() + ["--test", path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@case("The page's figures, times and axes are written as its tests say")
def _():
    run_by_node("tests/page/unit/format_test.mjs")


@case("The page joins, thins and smooths curves as its tests say")
def _():
    run_by_node("tests/page/unit/curves_test.mjs")


@case("The page concludes health, timelines and leaderboards as its tests say")
def _():
    run_by_node("tests/page/unit/model_test.mjs")


@case("The page follows Jobs through refused streams and lost connections as its tests say")
def _():
    run_by_node("tests/page/unit/live_test.mjs")


@case("The page joins lines of logs, and writes specs as YAML, as its tests say")
def _():
    run_by_node("tests/page/unit/logs_test.mjs")


main()
