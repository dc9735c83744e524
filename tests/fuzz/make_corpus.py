#!/usr/bin/env python3
"""Writes the corpus files that are not text: SentencePiece models, weights with a map, and packed tables.

    tests/fuzz/make_corpus.py        beside this file, in corpus/
"""
import gzip
import io
import json
import pathlib
import struct
import zipfile

CORPUS = pathlib.Path(__file__).parent / "corpus"
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(value, score, kind):
    return text(1, text(1, value) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


def model(kind, byte_fallback=False, character_map=b""):
    """A SentencePiece model file. kind: 1 unigram, 2 BPE."""
    pieces = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("\u2581the", -1.5, NORMAL), ("\u2581", -2, NORMAL),
              ("th", -2.5, NORMAL), ("cat", -3, NORMAL), ("<user>", 0, USER)]
    pieces += [(letter, -4 - i / 8, NORMAL) for i, letter in enumerate("abcehmnost.")]
    if byte_fallback:
        pieces += [("<0x%02X>" % byte, 0, BYTE) for byte in range(256)]
    trainer = number(3, kind) + (number(35, 1) if byte_fallback else b"")
    normalizer = (text(2, character_map) if character_map else b"") + number(3, 1) + number(4, 1) + number(5, 1)
    return b"".join(piece(*p) for p in pieces) + text(2, trainer) + text(3, normalizer)


def characters():
    """A character map that replaces A by a: a double array (Darts-clone) of 256 units, and its texts."""
    units = [0] * 512
    root, leaf = 256, 300
    units[0] = root << 10
    at = root ^ ord("A")
    units[at] = (at ^ leaf) << 10 | 1 << 8 | ord("A")
    units[leaf] = 1 << 31 | 0
    trie = struct.pack("<512I", *units)
    return struct.pack("<I", len(trie)) + trie + b"a\0"


def safetensors(tensors):
    header, data = {}, b""
    for name, shape in tensors.items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += struct.pack("<%df" % (size // 4), *range(size // 4))
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


def archive(members, method=zipfile.ZIP_DEFLATED):
    """A ZIP archive with the bytes of each name; its times are always the same."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as packed:
        for name, content in members.items():
            packed.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


def write(name, content):
    path = CORPUS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


write("tokenizer/unigram.model", model(1) + b"\xfethe cat <user> sat")
write("tokenizer/bpe.model", model(2) + b"\xfethe thecat")
write("tokenizer/bytes.model", model(2, byte_fallback=True) + b"\xfe\xf0\x9f\x90\xb1")
write("tokenizer/characters.model", model(1, character_map=characters()) + b"\xfeTHE CAT")
write("tokenizer/words.txt", b"traind words 1\nthe\ncat\nsat\n\xfethe dog")
write("weight_map/rows",
      b"layers.{i}.weight: block.{i}.w[0:4]\nlayers.{i}.bias: block.{i}.b\ntokens.weight: table\n"
      b"layers.12.*: skip\noutput.weight: a^T, b\n--\n" +
      safetensors({"block.0.w": [6, 2], "block.0.b": [4], "table": [5, 2], "a": [4, 1], "b": [1, 4]}))
write("weight_map/names", b"\n--\n" + safetensors({"layers.0.weight": [4, 2], "output.weight": [2, 4]}))

TABLE = b"id,size,town,y\n1,2.5,Paris,a\n2,3.5,Rome,b\n3,,Paris,a\n,,,\n,,,\n"
write("packed_table/plain.csv", TABLE)
write("packed_table/german.csv", "ort;preis\nK\u00f6ln;1,5 \u20ac\n".encode("cp1252"))
write("packed_table/damaged.csv", "ort,preis\nZ\u00fcrich,1\nGen\u00e8ve,2\nK".encode() + b"\xf6ln,3\n")
write("packed_table/utf16.csv", "a,b\n1,\U0001f600\n".encode("utf-16"))
write("packed_table/table.csv.gz", gzip.compress(TABLE, mtime=0))
write("packed_table/two.csv.gz", gzip.compress(TABLE[:20], mtime=0) + gzip.compress(TABLE[20:], mtime=0) + bytes(8))
write("packed_table/table.zip", archive({"__MACOSX/._table.csv": b"x", "folder/": b"", "folder/table.csv": TABLE}))
write("packed_table/stored.zip", archive({"table.tsv": TABLE.replace(b",", b"\t")}, zipfile.ZIP_STORED))
write("packed_table/many.zip", archive({"train.csv": TABLE, "test.csv": TABLE}))
