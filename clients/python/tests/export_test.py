"""Exports, read back byte by byte."""
import csv
import json
import os
import struct
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests")]

from export_fixture import JOB, POINTS
from tests.cases import case, main
from traind import export

def folder():
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def records(path):
    """The contents of a TFRecord file, their checksums verified."""
    def check(content, masked):
        rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
        assert (rotated << 15 | rotated >> 17) & 0xFFFFFFFF == export.crc32c(content), path
    with open(path, "rb") as f:
        content = f.read()
    while content:
        length, crc = struct.unpack("<QI", content[:12])
        check(content[:8], crc)
        check(content[12:12 + length], struct.unpack("<I", content[12 + length:16 + length])[0])
        yield content[12:12 + length]
        content = content[16 + length:]


def fields(content):
    """(number, value) of a Protobuf message."""
    def varint():
        nonlocal content
        value = shift = 0
        while True:
            byte, content = content[0], content[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while content:
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, content[:size]
            content = content[size:]


@case("The checksum is CRC-32C: the values of RFC 3720")
def _():
    assert export.crc32c(b"123456789") == 0xE3069283
    assert export.crc32c(bytes(32)) == 0x8A9136AA
    assert export.crc32c(bytes(range(32))) == 0x46DD794E


@case("TensorBoard's files have a run for each model, in which the later value of a step counts")
def _():
    root = folder()
    paths = export.write_tensorboard(JOB, POINTS, root)
    assert sorted(os.path.relpath(os.path.dirname(p), root) for p in paths) == ["blobs-1/fold-0", "blobs-1/fold-1"], paths
    first, *events = [dict(fields(r)) for r in records(paths[0])]
    assert first[3] == b"brain.Event:2", first
    read = []
    for e in events:
        value = dict(fields(dict(fields(e[5]))[1]))
        read.append((e[2], value[1].decode(), round(struct.unpack("<f", value[2])[0], 6)))
    assert read == [(10, "val_loss", 1.0), (20, "val_loss", 0.8), (30, "val_loss", 0.7)], read
    assert struct.unpack("<d", events[0][1])[0] > 1.7e9
    assert export.write_tensorboard(JOB, POINTS, root) == paths and len(os.listdir(os.path.dirname(paths[0]))) == 1


@case("The table has a row for each point with the name of its run")
def _():
    path = export.write_csv(JOB, POINTS, os.path.join(folder(), "points.csv"))
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert [r["run"] for r in rows] == ["fold-0"] * 4 + ["fold-1"] * 2, rows
    assert rows[5]["name"] == "val_metric" and rows[5]["value"] == "0.25", rows[5]


@case("The timeline has a lane for each task, whose Attempts do not overlap, the Decisions, and the figures")
def _():
    path = export.write_trace(JOB, POINTS, os.path.join(folder(), "trace.json"))
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    attempts = [e for e in events if e["ph"] == "X" and e["cat"] == "attempt"]
    assert [(e["name"], e["ts"], e["dur"]) for e in attempts] == [
        ("fold-0 (RANK_DIED)", 2000000, 2000000), ("fold-0 (still runs)", 5000000, 4000000),
        ("fold-1 (COMPLETED)", 2000000, 4000000)], attempts
    assert attempts[0]["tid"] == attempts[1]["tid"] != attempts[2]["tid"], attempts
    decisions = [e for e in events if e["ph"] == "i"]
    assert [d["name"] for d in decisions] == ["B2: 5 folds -> 3 folds"] and decisions[0]["ts"] == 3000000, decisions
    counters = [e for e in events if e["ph"] == "C"]
    assert len(counters) == 5, counters  # NaN is no number of JSON
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"Job blobs-1", "Worker w", "fold-0", "fold-1", "Decisions"} <= names, names


@case("A Job that waits has a timeline, too")
def _():
    waiting = {**JOB, "state": "QUEUED", "started_at": None, "finished_at": None, "attempts": [], "decisions": []}
    assert [e["name"] for e in export.trace_events(waiting, []) if e["ph"] == "X"] == ["blobs-1 (QUEUED)"]


main()
