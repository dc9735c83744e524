"""Tries mutants; tests/mutation/run.sh tells how it is called.

A mutant is a section of mutants.ini:

    [name]
    file = the product's source file
    old = a part of one of its lines, which is there once
    new = what stands there instead (nothing: it is dropped)
    tests = test targets, of which one should fail
    seeds = N: the simulation should find a violation in seeds 1 to N
    machines = fleet: of that kind (simulate --machines); any where it is left out

The tests run first without any mutant: what fails then says nothing about mutants.
"""
import argparse
import configparser
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SIMULATE = "//tests/simulation:simulate"
# A mutant may run for ever: that is noticed, too.
TEST_LIMIT_S = 120
# And it may write for ever, more than Bazel can make a report of.
TEST_LIMIT_BYTES = 64 << 20
# Mutants are tried by Bazel; a test of this program brings another one.
BAZEL = os.environ.get("MUTATION_BAZEL", "bazel")


class Broken(Exception):
    """Why nothing can be said about a mutant."""


def read_mutants(path, names):
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None,
                                       default_section=None)
    if not parser.read(path):
        raise Broken(f"there is no {path}")
    unknown = set(names) - set(parser.sections())
    if unknown:
        raise Broken(f"no such mutant: {', '.join(sorted(unknown))}")
    mutants = []
    for name in parser.sections():
        if names and name not in names:
            continue
        section = parser[name]
        mutants.append({"mutant": name, "file": section["file"], "old": section["old"],
                        "new": section.get("new", ""), "tests": section.get("tests", "").split(),
                        "seeds": section.getint("seeds", 0),
                        "machines": section.get("machines", "any")})
    return mutants


def mutated(tree, mutant):
    """The text of the mutant's file with its bug."""
    path = os.path.join(tree, mutant["file"])
    if not os.path.exists(path):
        raise Broken(f"there is no {mutant['file']}")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    count = text.count(mutant["old"])
    if count != 1:
        raise Broken(f"its old text is in {mutant['file']} {count} times, not once: {mutant['old']}")
    if mutant["old"] == mutant["new"] or "\n" in mutant["old"] + mutant["new"]:
        raise Broken("it changes nothing, or more than a line")
    if not mutant["tests"] and not mutant["seeds"]:
        raise Broken("no test is named that should notice it")
    return text.replace(mutant["old"], mutant["new"])


def copy_tree(source, target):
    """What git tracks, or would, and the links to the dependencies."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=source, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and os.path.lexists(os.path.join(source, name))}
    for name in ("user.bazelrc", ".deps/venv", ".deps/trees"):
        if os.path.lexists(os.path.join(source, name)):
            wanted.add(name)
    for name in sorted(wanted):
        at = os.path.join(target, name)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        write_if_other(os.path.join(source, name), at)
    kept = os.path.join(target, ".mutation-files")  # of the run before
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as f:
            for name in set(f.read().split("\n")) - wanted - {""}:
                if os.path.lexists(os.path.join(target, name)):
                    os.remove(os.path.join(target, name))
    with open(kept, "w", encoding="utf-8") as f:
        f.write("\n".join(sorted(wanted)))


def write_if_other(source, target):
    """Copies a file, and leaves one alone that is the same already."""
    if os.path.islink(source):
        if not os.path.lexists(target):
            os.symlink(os.readlink(source), target)
        return
    with open(source, "rb") as f:
        content = f.read()
    if os.path.exists(target):
        with open(target, "rb") as f:
            if f.read() == content:
                return
    shutil.copy(source, target)


class Tree:
    """A copy of the sources in which mutants are tried, one at a time."""

    def __init__(self, folder):
        self.folder = folder

    def bazel(self, *arguments):
        return subprocess.run([BAZEL, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")

    def failures(self, tests):
        """What of the tests fails: 'target case' each. Raises Broken where they do not build."""
        if not tests:
            return []
        result = self.bazel("test", "--keep_going", "--noshow_progress", "--color=no", "--curses=no",
                            f"--test_timeout={TEST_LIMIT_S}",
                            f"--run_under=prlimit --fsize={TEST_LIMIT_BYTES}", *tests)
        if result.returncode == 0:
            return []
        if result.returncode != 3:  # 3: all was built, and a test failed
            raise Broken("it does not build:\n" + result.stdout[-3000:])
        failed = []
        for test in tests:
            package, name = test.lstrip("/").split(":")
            failed += self.failed_cases(test, os.path.join(self.folder, "bazel-testlogs", package, name))
        return failed or ["a test"]

    def failed_cases(self, test, logs):
        paths = [os.path.join(at, "test.xml") for at, _, names in os.walk(logs) if "test.xml" in names]
        failed = []
        for path in sorted(paths):
            try:
                for case in ElementTree.parse(path).iter("testcase"):
                    if case.find("failure") is not None or case.find("error") is not None:
                        failed.append(f"{test} {case.get('name')}")
            except ElementTree.ParseError:
                failed.append(f"{test} ended in the middle")
        return failed

    def violated_seed(self, seeds, machines):
        """The first seed of the simulation whose history is wrong; None: there is none."""
        if not seeds:
            return None
        result = self.bazel("build", "--noshow_progress", "--color=no", "--curses=no", SIMULATE)
        if result.returncode != 0:
            raise Broken("it does not build:\n" + result.stdout[-3000:])
        program = os.path.join(self.folder, "bazel-bin/tests/simulation/simulate")
        try:
            run = subprocess.run([program, "--machines", machines, "--seeds", str(seeds), "--stop_at_first", "1"],
                                 stdout=subprocess.PIPE, text=True, timeout=TEST_LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"none ended within {TEST_LIMIT_S} s"
        if run.returncode == 0:
            return None
        try:
            return json.loads(run.stdout.strip().split("\n")[-1])["seeds"]
        except (ValueError, KeyError):
            return "one that ended the simulation"

    def caught_by(self, mutant):
        """What noticed the mutant, as a text; None: it survived."""
        path = os.path.join(self.folder, mutant["file"])
        text = mutated(self.folder, mutant)
        with open(path, encoding="utf-8") as f:
            right = f.read()
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            failed = self.failures(mutant["tests"])
            seed = self.violated_seed(mutant["seeds"], mutant["machines"])
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(right)
        parts = failed[:1] if len(failed) < 2 else [f"{failed[0]} and {len(failed) - 1} more"]
        if seed is not None:
            parts.append(f"simulation, seed {seed}")
        wanted = bool(mutant["tests"]) + bool(mutant["seeds"])
        return "; ".join(parts) if len(parts) == wanted else None

    def check_without_mutants(self, mutants):
        tests = sorted({test for mutant in mutants for test in mutant["tests"]})
        failed = self.failures(tests)
        for machines in sorted({mutant["machines"] for mutant in mutants if mutant["seeds"]}):
            seeds = max(mutant["seeds"] for mutant in mutants if mutant["machines"] == machines)
            seed = self.violated_seed(seeds, machines)
            if seed is not None:
                failed.append(f"simulation ({machines}), seed {seed}")
        if failed:
            raise Broken(f"without a mutant fails: {failed}")

    def forget(self):
        self.bazel("clean", "--expunge")
        shutil.rmtree(self.folder, ignore_errors=True)


def say(record):
    print(json.dumps(record), flush=True)


def write_table(path, results, minutes):
    """In place of what follows the first line that begins a table."""
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            before = f.read().split("| mutant |")[0]
    rows = ["| mutant | what the bug is | caught by |", "| --- | --- | --- |"]
    for r in results:
        changed = f"`{r['old']}` becomes `{r['new']}`" if r["new"] else f"`{r['old']}` is dropped"
        caught = (r["caught_by"] or "survived").replace("//tests/", "")
        cells = [r["mutant"], f"{r['file']}: {changed}", caught]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + "\n".join(rows) + f"\n\n{len(results)} mutants took {minutes:.0f} minutes.\n")


def run(arguments):
    source = os.getcwd()
    mutants = read_mutants(arguments.mutants, arguments.names)
    errors = 0
    for mutant in mutants:
        try:
            mutated(source, mutant)
        except Broken as e:
            errors += 1
            say({"mutant": mutant["mutant"], "error": str(e)})
    if errors or arguments.check:
        say({"mutants": len(mutants), "errors": errors})
        return 2 if errors else 0
    folder = arguments.tree or tempfile.mkdtemp(prefix="traind-mutation-")
    tree, results = Tree(folder), []
    begin = time.monotonic()
    try:
        os.makedirs(folder, exist_ok=True)
        copy_tree(source, folder)
        tree.check_without_mutants(mutants)
        for mutant in mutants:
            since = time.monotonic()
            try:
                caught = tree.caught_by(mutant)
            except Broken as e:
                errors += 1
                say({"mutant": mutant["mutant"], "error": str(e)})
                continue
            results.append({**mutant, "caught_by": caught})
            say({"mutant": mutant["mutant"], "caught_by": caught,
                 "seconds": round(time.monotonic() - since, 1)})
    finally:
        if not arguments.tree:
            tree.forget()
    if arguments.table:
        write_table(arguments.table, results, (time.monotonic() - begin) / 60)
    survived = sum(r["caught_by"] is None for r in results)
    say({"mutants": len(mutants), "survived": survived, **({"errors": errors} if errors else {})})
    return 2 if errors else 1 if survived else 0


def main():
    parser = argparse.ArgumentParser(description="Tries mutants; see tests/mutation/run.sh.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tree")
    parser.add_argument("--mutants", default="tests/mutation/mutants.ini")
    parser.add_argument("--table")
    parser.add_argument("names", nargs="*")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy goes
    try:
        return run(parser.parse_args())
    except Broken as e:
        print(f"mutation: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
