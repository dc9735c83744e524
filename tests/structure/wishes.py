"""README's table "To add a ... | touch ...": its files exist, and nothing else keeps a list of such things.

    findings(root) -> list of "file: what is wrong"
    python3 tests/structure/wishes.py [ROOT]    prints them

A list elsewhere is what makes a new metric, network or field of the spec need more files than the
table names. A file is taken for such a list when it names most of what there is.
"""
import glob
import os
import re
import sys

_PRODUCT = ("common", "server", "worker", "client", "proto", "build_defs")
_SOURCES = (".h", ".cc", ".inc", ".bzl", ".bazel", ".proto")
_CODE = re.compile(r"`([^`]+)`")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def table(root):
    """Wish -> the paths that its row names; NAME in one stands for the new thing's name."""
    rows = {}
    inside = False
    for line in read(root, "README.md").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| To add a"):
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not cells[0].startswith("---"):
            rows[cells[0]] = [c for c in _CODE.findall(cells[1]) if "/" in c]
    return rows


def product_files(root):
    for tree in _PRODUCT:
        for folder, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(d for d in folders if not d.startswith((".", "bazel-")))
            for name in sorted(files):
                if name.endswith(_SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), root)


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def message_fields(root, message):
    """Names of the fields of a message of proto/job.proto, in order, its oneofs' included."""
    text = without_comments(read(root, "proto/job.proto"))
    begin = text.index("message %s {" % message)
    depth, end = 0, begin
    for end in range(text.index("{", begin), len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            break
    body = re.sub(r"\[\(rules\).*?\}\]", "", text[begin:end], flags=re.S)
    return re.findall(r"([a-z]\w*) = \d+", body)


def metrics(root):
    """Names by the constants of common/metrics/registry.inc."""
    names = {}
    for path in glob.glob(os.path.join(root, "common/metrics/*.cc")):
        with open(path, encoding="utf-8") as f:
            for constant, name in re.findall(r'const MetricKind k(\w+)Metric = \{\s*"(\w+)"', f.read()):
                names[constant] = name
    return names


def networks(root):
    """The kinds of ModelSpec's oneof `architecture`, without trees, programs of users and what chooses among kinds."""
    text = without_comments(read(root, "proto/job.proto"))
    body = re.search(r"oneof architecture \{(.*?)\n  \}", text, re.S).group(1)
    fields = re.findall(r"(\w+) = \d+([^;]*);", body)
    return [name for name, rules in fields if name != "command" and not re.search(r"trees: true|word: \"auto\"", rules)]


def words(root, path):
    """What a file says in code: "words" in quotes, names( that are called, kCases: and has_names(."""
    text = without_comments(read(root, path))
    quoted = set(re.findall(r'"(\w+)"', text))
    called = set(re.findall(r"\b(\w+)\(", text))
    cases = {name.lower() for name in re.findall(r"\bk(\w+):", text)}
    return quoted, called, cases | {name[4:] for name in called if name.startswith("has_")}


def lists(said, names, most, allowed):
    """(file, names) of product files, besides those allowed, that say at least so many of the names."""
    for path, spoken in said.items():
        named = [name for name in names if name in spoken]
        if len(named) >= most and path not in allowed:
            yield path, named


def _files(root):
    for wish, paths in table(root).items():
        if not paths:
            yield f"README.md: '{wish}' names no file"
        for path in paths:
            # A new file stands beside others of its kind.
            pattern = path.replace("NAME", "*")
            if not glob.glob(os.path.join(root, pattern)):
                yield f"README.md: '{wish}': there is no {path}"


def _metrics(root, said):
    registry = re.findall(r"^METRIC\((\w+)\)$", read(root, "common/metrics/registry.inc"), re.M)
    names = metrics(root)
    for constant in sorted(set(registry) ^ set(names)):
        yield f"common/metrics/registry.inc: METRIC({constant}) has either no line or no file"
    words = re.search(r"string metric = 2 \[\(rules\) = \{(.*?)\}\]", read(root, "proto/job.proto"), re.S)
    spoken = re.findall(r'one_of: "(\w+)"', words.group(1))
    ours = [names[c] for c in registry if c in names]
    if spoken != ours:
        yield f"proto/job.proto: task.metric takes {spoken}, but the registry has {ours}"
    allowed = ["proto/job.proto", "common/metrics/registry.inc"]
    quoted = {path: spoken[0] for path, spoken in said.items()}
    for path, named in lists(quoted, ours, 3, allowed):
        yield f"{path}: lists metrics ({', '.join(named)}), which a new one would have to join"


def _networks(root, said):
    kinds = networks(root)
    registry = read(root, "worker/model/networks/model.cc")
    for kind in kinds:
        if f'"{kind}"' not in registry:
            yield f"worker/model/networks/model.cc: has no line for {kind}"
    # A network without ranges of its own in search_rules.cc is searched over the fields of train.
    allowed = ["proto/job.proto", "worker/model/networks/model.cc", "server/intake/epoch_work.cc",
               "common/spec/search_rules.cc"]
    kinds_said = {path: quoted | cases for path, (quoted, _, cases) in said.items()}
    for path, named in lists(kinds_said, kinds, max(3, len(kinds) - 2), allowed):
        yield f"{path}: lists networks ({', '.join(named)}), which a new one would have to join"


def _fields(root, said):
    fields = message_fields(root, "TrainSpec")
    fields_said = {path: quoted | called for path, (quoted, called, _) in said.items()}
    # The dictionary of stored specs never changes: a new field is stored without it.
    allowed = ["proto/job.proto", "server/store/spec_text.cc"]
    for path, named in lists(fields_said, fields, len(fields) * 2 // 3, allowed):
        yield f"{path}: lists {len(named)} fields of TrainSpec, which a new one would have to join"


def findings(root):
    said = {path: words(root, path) for path in product_files(root)}
    return [*_files(root), *_metrics(root, said), *_networks(root, said), *_fields(root, said)]


if __name__ == "__main__":
    result = findings(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(result) or "a new thing needs the files that README names")
    sys.exit(1 if result else 0)
