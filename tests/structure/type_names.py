"""No two types of one program have the same name, which the linker would mix up without a word.

    findings(root) -> list of "file:line: what is wrong"
    PYTHONPATH=. python3 tests/structure/type_names.py [ROOT]    prints them

Types in a namespace without a name do not count. server, worker and client share no program, so
the same name may stand in two of them, but not in one of them and in common.
"""
import os
import re
import sys

from tests.structure import waits

_OPEN = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{$")
_TYPE = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)(?: final)?(?: ?:[^:;].*| ?\{.*)?$")


def _types(path):
    """(line number, qualified name) of each type that is defined outside other types and functions."""
    spaces = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            code = line.partition("//")[0].rstrip()
            if space := _OPEN.match(code):
                spaces.append(space.group(1))
            elif code == "}" and line.startswith("}  // namespace"):
                spaces.pop()
            elif (found := _TYPE.match(code)) and "" not in spaces:
                yield number, "::".join(spaces + [found.group(1)])


def findings(root):
    seen, found = {}, []  # qualified name -> its places
    for path in waits.sources(root):
        for number, name in _types(os.path.join(root, path)):
            room = path.split(os.sep)[0]
            for other in seen.get(name, []):
                if other.split(os.sep)[0] in (room, "common") or room == "common":
                    found.append(f"{path}:{number}: {name} is the name of another type in {other}")
            seen.setdefault(name, []).append(path)
    return found


if __name__ == "__main__":
    result = findings(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(result) or "every type of a program has a name of its own")
    sys.exit(1 if result else 0)
