"""Writes common/data/text/unicode_tables.cc: what the `tokenizers` library does to each character.

The tables are asked of the library itself, because its parts follow different versions of Unicode.

  pip install tokenizers==0.22.2
  python3 tools/unicode_tables.py > common/data/text/unicode_tables.cc
"""
from tokenizers import Regex, __version__, normalizers, pre_tokenizers

POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
WIDTH = 100


def ranges(points):
    found = []
    for c in points:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def cleaned(c):
    bert = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return bert.normalize_str(f"a{chr(c)}a")


def matching(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    return [c for c in POINTS if not split.pre_tokenize_str(chr(c))]


def changed(normalizer, points):
    found = {}
    for c in points:
        to = normalizer.normalize_str(chr(c))
        if to != chr(c):
            found[c] = [ord(x) for x in to]
    return found


def runs(mapping):
    """[first, last, step, first's image]: of characters that follow each other, or every second one."""
    found = []
    for c, to in sorted(mapping.items()):
        last = found[-1] if found else None
        if last and to - last[3] == c - last[0]:
            step = c - last[1]
            if step in (1, 2) and last[2] in (0, step):
                last[1], last[2] = c, step
                continue
        found.append([c, c, 0, to])
    return [[a, b, s or 1, t] for a, b, s, t in found]


def braced(item):
    if isinstance(item, int):
        return hex(item) if item > 9 else str(item)
    return "{" + ", ".join(braced(x) for x in item) + "}"


def put(name, kind, items):
    print(f"const {kind} k{name}[] = {{")
    line = "   "
    for item in items:
        text = " " + braced(item) + ","
        if len(line) + len(text) > WIDTH:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")
    print(f"const size_t k{name}Count = {len(items)};\n")


def main():
    print(f"""// Written by tools/unicode_tables.py with tokenizers {__version__}.
#include "common/data/text/unicode_tables.h"

namespace traind {{

// clang-format off""")
    put("DroppedByBert", "CharacterRange", ranges(c for c in POINTS if cleaned(c) == "aa"))
    bert = pre_tokenizers.BertPreTokenizer()
    put("Punctuation", "CharacterRange",
        ranges(c for c in POINTS if len(bert.pre_tokenize_str(f"a{chr(c)}a")) == 3))
    put("Letters", "CharacterRange", ranges(matching(r"\p{L}")))
    put("Numbers", "CharacterRange", ranges(matching(r"\p{N}")))
    put("Blanks", "CharacterRange", ranges(matching(r"\s")))
    stripped = changed(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True,
                                                  lowercase=False), [c for c in POINTS if c not in HANGUL])
    put("Accents", "CharacterRange", ranges(sorted(c for c, to in stripped.items() if not to)))
    plain = {c: to for c, to in stripped.items() if to}
    put("WithoutAccents", "CharacterRun", runs({c: to[0] for c, to in plain.items() if len(to) == 1}))
    several = [[c, to + [0] * (3 - len(to))] for c, to in sorted(plain.items()) if len(to) != 1]
    assert all(len(to) == 3 for _, to in several)
    put("SeveralWithoutAccents", "CharacterParts", several)
    lower = changed(normalizers.Lowercase(), POINTS)
    assert {c: to for c, to in lower.items() if len(to) != 1} == {0x130: [0x69, 0x307]}
    put("Lower", "CharacterRun", runs({c: to[0] for c, to in lower.items() if len(to) == 1}))
    print("// clang-format on\n\n}  // namespace traind")


if __name__ == "__main__":
    main()
