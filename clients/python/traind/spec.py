"""Specs as Python writes them: tables in place of files, seconds in place of texts, paths relative to this program."""
from __future__ import annotations

import copy
import datetime
import os
from typing import Any, Callable, Dict, List, Tuple

# The fields that name files which traind reads (`path: true` in proto/job.proto). They must be absolute.
PATH_FIELDS = ("data.train", "data.test", "data.image.labels", "data.image.test_labels", "data.text.model_file",
               "model.command.code", "model.command.sample_submission", "model.pretrained.file", "model.pretrained.folder",
               "model.pretrained.map_file", "model.script.file", "predict.data", "run.folder", "run.results",
               "run.sample_submission")


def duration_text(value: Any) -> str:
    """A duration as a spec has it: 60, timedelta(minutes=1) and "60s" are one minute."""
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"a duration is a number of seconds, a timedelta or a text like '60s', not {value!r}")
    return value if isinstance(value, str) else f"{value:g}s" if value < 1e6 else f"{int(value)}s"


def budget_of(value: Any) -> Dict[str, Any]:
    """The field `budget`: of a duration, of a datetime (the deadline), or of the field's own dict."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.astimezone()
        return {"deadline": value.isoformat()}
    return {"time": duration_text(value)}


def after_of(value: Any) -> Any:
    """The field `after`: of a Job, of an id, of a list of them, or of the field's own dict."""
    if isinstance(value, dict):
        return {**value, "jobs": after_of(value["jobs"])} if "jobs" in value else dict(value)
    return [getattr(job, "id", job) for job in (value if isinstance(value, (list, tuple)) else [value])]


def _parent(spec: Dict[str, Any], path: str) -> Tuple[Any, str]:
    *folders, last = path.split(".")
    node: Any = spec
    for name in folders:
        node = node.get(name) if isinstance(node, dict) else None
    return node, last


def resolved(spec: Dict[str, Any], write: Callable[[Any], str]) -> Tuple[Dict[str, Any], List[str]]:
    """The spec with absolute paths, and the files that `write` has made of the tables in it."""
    spec = {key: copy.copy(value) for key, value in spec.items()}
    if "budget" in spec:
        spec["budget"] = budget_of(spec["budget"])
    if spec.get("after") is not None:
        spec["after"] = after_of(spec["after"])
    for section in ("data", "model"):
        if isinstance(spec.get(section), dict):
            spec[section] = {k: dict(v) if isinstance(v, dict) else v for k, v in spec[section].items()}
    files: List[str] = []
    for path in PATH_FIELDS:
        node, name = _parent(spec, path)
        if not isinstance(node, dict) or node.get(name) is None:
            continue
        value = node[name]
        if isinstance(value, (str, os.PathLike)):
            node[name] = os.path.abspath(os.path.expanduser(os.fspath(value)))
        else:
            node[name] = write(value)
            files.append(node[name])
    return spec, files
