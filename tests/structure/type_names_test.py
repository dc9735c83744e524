"""No two types of one program share a name, and the check sees two that do."""
import os
import tempfile

from tests.cases import case, main
from tests.structure import type_names

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def header(body, space="traind"):
    return f"namespace {space} {{\n\n{body}\n\n}}  // namespace {space}\n"


GOOD = {
    "common/a.h": header("struct Later;\n\nstruct Row {\n  struct Place {};\n  int at = 0;\n};"),
    "common/b.cc": header("namespace {\n\nstruct Row {};\n\n}  // namespace\n\nstruct Place {\n};"),
    "common/c.h": header("class Row {\n};", "traind::facts"),
    "server/d.h": header("class Slot final : public Place {\n};\n\nenum class Colour { kRed };"),
    "worker/e.h": header("struct Slot {\n};\n\nstruct Later;"),
}

# A file that is planted -> its complaint.
BAD = [
    ("server/z.h", header("class Row {\n};"), "server/z.h:3: traind::Row is the name of another type in common/a.h"),
    ("common/z.cc", header("struct Row {};"), "common/z.cc:3: traind::Row is the name of another type in common/a.h"),
    ("server/z.h", header("struct Slot : Row {\n};"), "server/z.h:3: traind::Slot is the name of another type in server/d.h"),
    ("server/z.h", header("enum Colour {\n};"), "server/z.h:3: traind::Colour is the name of another type in server/d.h"),
    ("worker/z.h", header("class Row final {\n};", "traind::facts"),
     "worker/z.h:3: traind::facts::Row is the name of another type in common/c.h"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return type_names.findings(root)


@case("No two types of one program have the same name")
def _():
    found = type_names.findings(ROOT)
    assert not found, "\n".join(found)


@case("Names that do not meet get no findings")
def _():
    assert findings_of(GOOD) == []


@case("Each planted second type of a name is found, at its line, and nothing else")
def _():
    for path, text, complaint in BAD:
        assert findings_of({**GOOD, path: text}) == [complaint], (path, findings_of({**GOOD, path: text}))


main()
