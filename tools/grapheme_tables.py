"""Writes common/data/text/mark_tables.cc: which characters belong together for the `tokenizers` library.

The tables are asked of the library itself, because its parts follow different versions of Unicode.

  pip install tokenizers==0.22.2 sentencepiece==0.2.1
  python3 tools/grapheme_tables.py > common/data/text/mark_tables.cc
"""
import io
import os
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, __version__, models, normalizers

from unicode_tables import HANGUL, POINTS, put, ranges


def replacing(rules):
    """A normalizer that replaces characters by a map of SentencePiece's, grapheme by grapheme."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.tsv")
        with open(path, "w", encoding="utf-8") as file:
            for before, after in rules.items():
                file.write(f"{ord(before):X}\t{ord(after):X}\n")
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g"] * 10), model_writer=out, vocab_size=12,
            normalization_rule_tsv=path, minloglevel=2, hard_vocab_limit=False)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(out.getvalue())
    return normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)


def put_words():
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.add_tokens([AddedToken("new", single_word=True)])
    token = tokenizer.token_to_id("new")
    put("OfWords", "CharacterRange", ranges(c for c in POINTS if token not in tokenizer.encode("new" + chr(c)).ids))


def put_graphemes():
    letter = replacing({"a": "X"})
    put("Joining", "CharacterRange", ranges(c for c in POINTS if letter.normalize_str("a" + chr(c)) == "X"))
    # Of four bytes, a control makes no grapheme that is short enough to be replaced as a whole.
    kinds = [c for c in POINTS if c < 0x10000 and unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp", "Cn")]
    line_ends = {0x9, 0xa, 0xd}  # SentencePiece's rules cannot have them
    control = replacing({chr(c): "Y" for c in kinds if c not in line_ends})
    alone = [c for c in kinds if c in line_ends or control.normalize_str(chr(c) + "\u0301") == "Y\u0301"]
    put("Controls", "CharacterRange", ranges(alone))
    put("Prepended", "CharacterRange", ranges(
        c for c in kinds if c not in line_ends and control.normalize_str(chr(c) + "a") == "Y"))


def put_compositions():
    nfc, nfd = normalizers.NFC(), normalizers.NFD()
    whole = {c: nfd.normalize_str(chr(c)) for c in POINTS if c not in HANGUL}
    whole = {c: to for c, to in whole.items() if to != chr(c)}
    parts, pairs = [], []
    for c, to in sorted(whole.items()):
        parts.append([c, [ord(x) for x in to] + [0] * (4 - len(to))])
        if nfc.normalize_str(chr(c)) != chr(c):
            continue  # it is never composed
        first = nfc.normalize_str(to[:-1])
        assert len(first) == 1 and nfc.normalize_str(first + to[-1]) == chr(c)
        pairs.append([ord(first), ord(to[-1]), c])
    assert all(len(to) == 4 for _, to in parts)
    put("Decompositions", "Decomposition", parts)
    put("Compositions", "Composition", sorted(pairs))
    # Marks stand in the order of their classes.
    lowest, highest = "\u0334", "\u0345"  # classes 1 and 240
    marks = [c for c in POINTS if c not in whole and c not in HANGUL and (
        nfd.normalize_str(highest + chr(c)) != highest + chr(c) or
        nfd.normalize_str(chr(c) + lowest) != chr(c) + lowest or c in (ord(lowest), ord(highest)))]
    known = {}
    for c in marks:
        known.setdefault(unicodedata.combining(chr(c)), chr(c))
    known.pop(0, None)

    def class_of(c):
        behind = [k for k, mark in known.items() if nfd.normalize_str(mark + chr(c)) != mark + chr(c)]
        before = [k for k, mark in known.items() if nfd.normalize_str(chr(c) + mark) != chr(c) + mark]
        among = [k for k in known if all(k < b for b in behind) and all(k > a for a in before)]
        assert len(among) == 1, (hex(c), among)
        return among[0]

    classes = []
    for c in marks:
        of = class_of(c)
        if classes and classes[-1][1] == c - 1 and classes[-1][2] == of:
            classes[-1][1] = c
        else:
            classes.append([c, c, of])
    put("Marks", "MarkRange", classes)


def main():
    print(f"""// Written by tools/grapheme_tables.py with tokenizers {__version__}.
#include "common/data/text/mark_tables.h"

namespace traind {{

// clang-format off""")
    put_words()
    put_graphemes()
    put_compositions()
    print("// clang-format on\n\n}  // namespace traind")


if __name__ == "__main__":
    main()
