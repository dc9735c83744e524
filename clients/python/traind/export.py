"""The figures of a Job for other tools: a table, event files of TensorBoard, a timeline, a run of MLflow.

Each function takes the Job and its points as the server's JSON has them, and asks nothing of the server.
"""
from __future__ import annotations

import csv
import json
import os
import struct
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .progress import moment

POINT_FIELDS = ("sequence", "at", "fold", "attempt", "step", "epoch", "name", "value")

Points = List[Dict[str, Any]]


def run_names(job: Dict[str, Any]) -> Dict[int, str]:
    """Attempt -> the name of its task: fold-0, fold-0-seed-1. A task that was tried again keeps its name."""
    return {attempt["id"]: attempt["task"] for attempt in job.get("attempts") or []}


def _run_of(names: Dict[int, str], point: Dict[str, Any]) -> str:
    return names.get(point["attempt"]) or f"fold-{point['fold']}"


def curves(job: Dict[str, Any], points: Points) -> Dict[str, Dict[str, Points]]:
    """Run -> name of the figure -> its points by step.

    A task that was tried again goes on from a checkpoint; the later value of a step counts.
    """
    names = run_names(job)
    found: Dict[str, Dict[str, Dict[int, Dict[str, Any]]]] = {}
    for point in sorted(points, key=lambda p: p["sequence"]):
        found.setdefault(_run_of(names, point), {}).setdefault(point["name"], {})[point["step"]] = point
    return {run: {name: [steps[s] for s in sorted(steps)] for name, steps in figures.items()}
            for run, figures in found.items()}


# ---- a table ----------------------------------------------------------------

def write_csv(job: Dict[str, Any], points: Points, path: str) -> str:
    """A row for each point; `run` is the task's name."""
    names = run_names(job)
    with open(path, "w", encoding="utf-8", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(("run",) + POINT_FIELDS)
        for point in points:
            table.writerow([_run_of(names, point)] + [point.get(field) for field in POINT_FIELDS])
    return path


# ---- TensorBoard ------------------------------------------------------------

def _crc32c_table() -> List[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(content: bytes) -> int:
    """The checksum of RFC 3720 (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content: bytes) -> bytes:
    """A record of a TFRecord file: length, its checksum, content, its checksum."""
    length = struct.pack("<Q", len(content))
    return length + _masked(length) + content + _masked(content)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _event(wall_time: float, rest: bytes) -> bytes:
    return record(b"\x09" + struct.pack("<d", wall_time) + rest)


def _scalar(wall_time: float, step: int, tag: str, value: float) -> bytes:
    # Event{wall_time=1, step=2, summary=5}, Summary{value=1}, Value{tag=1, simple_value=2}
    content = _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return _event(wall_time, b"\x10" + _varint(step) + _bytes_field(5, _bytes_field(1, content)))


def _finite_in_float(value: float) -> float:
    """A float of four bytes holds no larger number; a value beyond it becomes infinite."""
    return value if value != value or abs(value) <= 3.4028234663852886e38 else float("inf") if value > 0 else float("-inf")


def write_tensorboard(job: Dict[str, Any], points: Points, folder: str) -> List[str]:
    """FOLDER/JOB/RUN/events.out.tfevents.*: an event file for each run. Written again, it replaces the earlier one."""
    paths = []
    for run, figures in curves(job, points).items():
        place = os.path.join(folder, job["id"], run)
        os.makedirs(place, exist_ok=True)
        start = moment(job.get("accepted_at")) or 0.0
        path = os.path.join(place, f"events.out.tfevents.{int(start)}.traind")
        with open(path + ".part", "wb") as f:
            f.write(_event(start, _bytes_field(3, b"brain.Event:2")))
            ordered = sorted((p for series in figures.values() for p in series), key=lambda p: p["sequence"])
            for point in ordered:
                f.write(_scalar(moment(point["at"]) or start, int(point["step"]), point["name"],
                                _finite_in_float(float(point["value"]))))
        os.replace(path + ".part", path)
        paths.append(path)
    return paths


# ---- a timeline -------------------------------------------------------------

def _microseconds(text: Optional[str], begin: float) -> Optional[int]:
    at = moment(text)
    return None if at is None else max(0, round(1e6 * (at - begin)))


def _lane(process: int, thread: int, name: str, kind: str = "thread_name") -> Dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}


def _attempt_events(job: Dict[str, Any], begin: float, end: int) -> Iterator[Dict[str, Any]]:
    """A process for each Worker, and in it a lane for each task: its Attempts follow each other."""
    workers: Dict[str, int] = {}
    lanes: Dict[Tuple[int, str], int] = {}
    for attempt in sorted(job.get("attempts") or [], key=lambda a: a["id"]):
        start = _microseconds(attempt.get("started_at"), begin)
        if start is None:
            continue
        worker = attempt.get("worker") or "?"
        if worker not in workers:
            workers[worker] = len(workers) + 2
            yield _lane(workers[worker], 0, f"Worker {worker}", "process_name")
        process = workers[worker]
        if (process, attempt["task"]) not in lanes:
            lanes[process, attempt["task"]] = len(lanes) + 1
            yield _lane(process, len(lanes), attempt["task"])
        stop = _microseconds(attempt.get("ended_at"), begin)
        reason = attempt.get("end_reason") or "still runs"
        yield {"ph": "X", "cat": "attempt", "name": f"{attempt['task']} ({reason})", "pid": process,
               "tid": lanes[process, attempt["task"]], "ts": start, "dur": max(0, (end if stop is None else stop) - start),
               "args": {"attempt": attempt["id"], "first_step": attempt.get("first_step"),
                        "message": attempt.get("message", "")}}


def _job_events(job: Dict[str, Any], begin: float, end: int) -> Iterator[Dict[str, Any]]:
    yield _lane(1, 0, f"Job {job['id']}", "process_name")
    yield _lane(1, 1, "Job")
    started = _microseconds(job.get("started_at"), begin)
    yield {"ph": "X", "cat": "job", "name": f"{job['id']} ({job.get('state')})", "pid": 1, "tid": 1, "ts": 0, "dur": end,
           "args": {"quality": job.get("quality"), "end_reason": job.get("end_reason"), "scores": job.get("scores")}}
    if started:
        yield {"ph": "X", "cat": "job", "name": "queued", "pid": 1, "tid": 1, "ts": 0, "dur": started, "args": {}}
    yield _lane(1, 2, "Decisions")
    for decision in job.get("decisions") or []:
        yield {"ph": "i", "s": "p", "cat": "decision", "pid": 1, "tid": 2,
               "name": f"{decision['rule']}: {decision['from']} -> {decision['to']}",
               "ts": _microseconds(decision["at"], begin) or 0,
               "args": {"cause": decision["cause"], "effect": decision["effect"]}}
    if job.get("deadline"):
        yield {"ph": "i", "s": "g", "cat": "job", "name": "deadline", "pid": 1, "tid": 2,
               "ts": _microseconds(job["deadline"], begin) or 0, "args": {}}


def trace_events(job: Dict[str, Any], points: Points) -> List[Dict[str, Any]]:
    """The events of the Chrome trace format; times in microseconds since the Job was accepted."""
    begin = moment(job["accepted_at"]) or 0.0
    times = [job.get("finished_at")] + [p["at"] for p in points] + [
        t for a in job.get("attempts") or [] for t in (a.get("started_at"), a.get("ended_at"))]
    end = max((t for t in (_microseconds(time, begin) for time in times) if t is not None), default=0)
    events = [*_job_events(job, begin, end), *_attempt_events(job, begin, end)]
    names = run_names(job)
    for point in points:
        if float(point["value"]) - float(point["value"]) == 0:  # JSON has no other numbers
            events.append({"ph": "C", "pid": 1, "name": f"{point['name']} {_run_of(names, point)}",
                           "ts": _microseconds(point["at"], begin) or 0, "args": {point["name"]: float(point["value"])}})
    return events


def write_trace(job: Dict[str, Any], points: Points, path: str) -> str:
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"displayTimeUnit": "ms", "otherData": {"job": job["id"]}, "traceEvents": trace_events(job, points)}, f,
                  allow_nan=False)
    return path


# ---- MLflow -----------------------------------------------------------------

_MOST_METRICS = 1000  # of a call


def _batches(items: List[Any], size: int) -> Iterable[List[Any]]:
    return (items[i:i + size] for i in range(0, len(items), size))


def to_mlflow(job: Dict[str, Any], points: Points, tracking_uri: Optional[str], experiment: str) -> str:
    """A run of MLflow: the scores and, as RUN/NAME, every curve. Returns the run's id."""
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param, RunTag
    except ImportError as e:
        raise ImportError("export_mlflow() needs mlflow: pip install mlflow-skinny") from e
    client = MlflowClient(tracking_uri)
    known = client.get_experiment_by_name(experiment)
    start = int(1000 * (moment(job.get("accepted_at")) or 0))
    run = client.create_run(known.experiment_id if known else client.create_experiment(experiment), start_time=start,
                            run_name=job["id"]).info.run_id
    metrics = [Metric(f"{name_of_run}/{name}", float(p["value"]), int(1000 * (moment(p["at"]) or 0)), int(p["step"]))
               for name_of_run, figures in curves(job, points).items() for name, series in figures.items()
               for p in series]
    scores = job.get("scores") or {}
    end = int(1000 * (moment(job.get("finished_at")) or 0)) or None
    metrics += [Metric(f"{scores.get('metric')}_{name}", float(scores[name]), end or start, 0)
                for name in ("oof", "test", "floor") if isinstance(scores.get(name), (int, float))]
    tags = [RunTag(f"traind.{name}", str(job.get(name))) for name in ("id", "quality", "end_reason") if job.get(name)]
    params = [Param(name, str((job.get("plan") or {}).get(name))) for name in ("folds", "epochs", "ranks")]
    client.log_batch(run, params=params, tags=tags)
    for batch in _batches(metrics, _MOST_METRICS):
        client.log_batch(run, metrics=batch)
    client.set_terminated(run, {"SUCCEEDED": "FINISHED", "CANCELLED": "KILLED"}.get(job.get("state"), "FAILED"), end)
    return run
