"""The documents name files and headings that exist, and the check sees it where they do not."""
import os
import tempfile

from tests.cases import case, main
from tests.structure import documents

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

GOOD = {
    "README.md": "[design](docs/DESIGN.md#the-two-words) and `server/main.cc`, `docs/{DESIGN,SPEC}.md`, `server/*.cc`\n",
    "docs/DESIGN.md": "# Design\n\n## The \"two\" words\n\n[back](../README.md), [web](https://example.org/x), [here](#design)\n\n"
                      "    `server/in_a_block.cc`\n\n```\n[x](nowhere.md)\n```\n",
    "docs/SPEC.md": "# Spec\n",
    "docs/decisions/0001-x.md": "# X\n\n## X\n\n[again](#x-1)\n",
    "mkdocs.yml": "nav:\n  - Design: docs/DESIGN.md\n  - Spec: docs/SPEC.md\n",
    "server/main.cc": '// See docs/SPEC.md, "Spec".\n',
}

# The text that replaces a file -> the complaint that must follow, and its place.
BAD = [
    ("README.md", "\n[x](docs/NONE.md)\n", "README.md:2: the link docs/NONE.md leads nowhere"),
    ("README.md", "\n[over\ntwo lines](docs/NONE.md)\n", "README.md:3: the link docs/NONE.md leads nowhere"),
    ("README.md", "\n[x](docs/DESIGN.md#three)\n", "README.md:2: the link docs/DESIGN.md#three leads to no heading"),
    ("docs/SPEC.md", "# Spec\n`server/none.cc`\n", "docs/SPEC.md:2: there is no server/none.cc"),
    ("docs/SPEC.md", "# Spec\n`server/{main,none}.cc`\n", "docs/SPEC.md:2: there is no server/none.cc"),
    ("server/main.cc", '\n// See docs/SPEC.md, "Words".\n', 'server/main.cc:2: docs/SPEC.md has no section "Words"'),
    ("README.md", '\n[x](docs/NONE.md "a title")\n', "README.md:2: the link docs/NONE.md leads nowhere"),
    ("README.md", "\n[![x](docs/DESIGN.md)](docs/NONE.md)\n", "README.md:2: the link docs/NONE.md leads nowhere"),
    ("README.md", "\n[x](docs/SPEC.md#spec-1)\n", "README.md:2: the link docs/SPEC.md#spec-1 leads to no heading"),
    ("server/NOTES.md", "[x](NONE.md)\n", "server/NOTES.md:1: the link NONE.md leads nowhere"),
    ("docs/tasks/new.md", "# New\n", "mkdocs.yml: docs/tasks/new.md is missing"),
    ("mkdocs.yml", "nav:\n  - Design: docs/DESIGN.md\n  - Spec: docs/SPEC.md\n  - x: docs/NONE.md\n", "mkdocs.yml: there is no docs/NONE.md"),
    ("docs/DESIGN.md", "# The two words\n" + "word " * 2000 + "\n", "docs/DESIGN.md:1: 2004 words, 2000 at most"),
]


def plant(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w") as f:
            f.write(text)


@case("Links and named files of the documents exist, and DESIGN.md is short")
def _():
    seen = list(documents.documents(ROOT))
    assert "README.md" in seen and "docs/DESIGN.md" in seen and "docs/design/engine.md" in seen, seen
    found = documents.findings(ROOT)
    assert not found, "\n" + "\n".join(found)


@case("Good documents get no findings")
def _():
    with tempfile.TemporaryDirectory() as root:
        plant(root, GOOD)
        assert documents.findings(root) == [], documents.findings(root)


@case("Each planted fault is found, at its line, and nothing else")
def _():
    for path, text, expected in BAD:
        with tempfile.TemporaryDirectory() as root:
            plant(root, GOOD)
            plant(root, {path: text})
            found = documents.findings(root)
            assert len(found) == 1 and found[0].startswith(expected), (expected, found)


@case("The files of a site are the documents and what they link to, once each")
def _():
    with tempfile.TemporaryDirectory() as root:
        plant(root, {**GOOD, "server/NOTES.md": "[a](main.cc), [b](main.cc), [folder](../docs)\n"})
        expected = ["README.md", "docs/DESIGN.md", "docs/SPEC.md", "docs/decisions/0001-x.md", "server/NOTES.md", "server/main.cc"]
        assert documents.files(root) == expected, documents.files(root)


main()
