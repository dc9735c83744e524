"""What the documents promise about files: links lead somewhere, named files exist, DESIGN.md stays short.

    findings(root) -> list of "file:line: what is wrong"
    python3 tests/structure/documents.py [ROOT]            prints them
    python3 tests/structure/documents.py --files [ROOT]    prints the documents and the files that they link to
"""
import glob
import os
import re
import sys

DESIGN_WORDS = 2000

_LINK = re.compile(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")  # also that of a picture that is a link itself
_NAV = re.compile(r"^\s*- .*: (\S+\.md)$", re.M)  # a page in mkdocs.yml
_CODE = re.compile(r"`([^`\n]+)`")
_TREES = ("build_defs", "client", "clients", "common", "deploy", "docs", "examples", "proto", "server", "tests", "third_party", "tools", "worker")
# A path of the repository, possibly with * or {a,b}; what a word followed by options, a flag or a target is, it is not.
_PATH = re.compile(r"^(?:%s)/[\w./*{},-]*$" % "|".join(_TREES))
# A section that a comment names: docs/DESIGN.md, "Words".
_SECTION = re.compile(r'(docs/[\w/]+\.md), "([^"]+)"')
_SOURCES = (".h", ".cc", ".proto", ".py", ".sh", ".bzl", ".md")


def documents(root):
    """Every .md file of the tree, relative to the root."""
    for tree in ("",) + _TREES:
        for folder, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(d for d in folders if tree and not d.startswith((".", "bazel-")))
            for name in sorted(files):
                if name.endswith(".md"):
                    yield os.path.relpath(os.path.join(folder, name), root)


def anchor(heading):
    """As GitHub makes one of a heading's text."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def prose_lines(path):
    """(number, line) without blocks of code."""
    fenced = False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                yield number, line.rstrip("\n")


def headings(path):
    return [line.lstrip("#").strip() for _, line in prose_lines(path) if line.startswith("#")]


def anchors(path):
    """The anchors of a document's headings; one that comes again gets a number behind it."""
    found = []
    for name in map(anchor, headings(path)):
        again = sum(a == name or re.fullmatch(re.escape(name) + r"-\d+", a) is not None for a in found)
        found.append(f"{name}-{again}" if again else name)
    return found


def links(root, document):
    """(line, target) of each link to a file or heading of the tree."""
    lines = dict(prose_lines(os.path.join(root, document)))
    text = "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))  # a link may go over two lines
    for match in _LINK.finditer(text):
        if not re.match(r"[a-z]+:", match.group(1)):
            yield text.count("\n", 0, match.end()) + 1, match.group(1)


def linked_path(document, target):
    """The path that a link leads to, relative to the root."""
    file = target.partition("#")[0]
    return os.path.normpath(os.path.join(os.path.dirname(document), file)) if file else document


def files(root):
    """The documents and the files that they link to: what a site of them consists of."""
    found = set(documents(root))
    for document in list(found):
        paths = [linked_path(document, target) for _, target in links(root, document)]
        found.update(path for path in paths if os.path.isfile(os.path.join(root, path)))
    return sorted(found)


def alternatives(path):
    """a/{b,c}.md -> a/b.md, a/c.md"""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [p for part in match.group(1).split(",") for p in alternatives(path[:match.start()] + part.strip() + path[match.end():])]


def _link_finding(root, document, target):
    path = os.path.join(root, linked_path(document, target))
    section = target.partition("#")[2]
    if not os.path.exists(path):
        return f"the link {target} leads nowhere"
    if section and path.endswith(".md") and section not in anchors(path):
        return f"the link {target} leads to no heading"
    return None


def _path_findings(root, code):
    words = code.split()
    for path in alternatives(words[0]) if words and _PATH.match(words[0]) else []:
        # NAME stands for the name of a file that a reader is to make.
        if not glob.glob(os.path.join(root, path.rstrip("/").replace("NAME", "*"))):
            yield f"there is no {path}"


def _document_findings(root, document):
    for number, target in links(root, document):
        if problem := _link_finding(root, document, target):
            yield f"{document}:{number}: {problem}"
    for number, line in prose_lines(os.path.join(root, document)):
        for code in _CODE.findall(line):
            yield from (f"{document}:{number}: {problem}" for problem in _path_findings(root, code))


def _section_findings(root):
    for tree in _TREES:
        for folder, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(d for d in folders if not d.startswith((".", "bazel-")))
            if os.path.relpath(folder, root) == "tests/structure":
                continue  # it names sections that do not exist, to be found
            for name in sorted(f for f in files if f.endswith(_SOURCES)):
                path = os.path.relpath(os.path.join(folder, name), root)
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    text = f.read()
                for match in _SECTION.finditer(text):
                    target = os.path.join(root, match.group(1))
                    line = text.count("\n", 0, match.start()) + 1
                    if not os.path.exists(target) or match.group(2) not in [h.partition(":")[0] for h in headings(target)]:
                        yield f'{path}:{line}: {match.group(1)} has no section "{match.group(2)}"'


def _site_findings(root):
    """The site's pages exist, and it has all documents but single decisions, which their own list names."""
    path = os.path.join(root, "mkdocs.yml")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        pages = _NAV.findall(f.read())
    for page in pages:
        if not os.path.exists(os.path.join(root, page)):
            yield f"mkdocs.yml: there is no {page}"
    for document in documents(root):
        folder, name = os.path.split(document)
        if folder.startswith("docs") and name != "README.md" and folder != "docs/decisions" and document not in pages:
            yield f"mkdocs.yml: {document} is missing"


def findings(root):
    found = [f for document in documents(root) for f in _document_findings(root, document)]
    found += _section_findings(root)
    found += _site_findings(root)
    design = os.path.join(root, "docs/DESIGN.md")
    if os.path.exists(design):
        with open(design, encoding="utf-8") as f:
            words = len(f.read().split())
        if words > DESIGN_WORDS:
            found.append(f"docs/DESIGN.md:1: {words} words, {DESIGN_WORDS} at most: move details to docs/design/")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--files"]:
        print("\n".join(files(sys.argv[2] if len(sys.argv) > 2 else ".")))
        sys.exit(0)
    result = findings(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(result) or "the documents name what exists")
    sys.exit(1 if result else 0)
