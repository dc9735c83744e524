"""Arrays of Jobs: one spec with several values of some fields, a Job for each combination."""
from __future__ import annotations

import itertools
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional

from .errors import TraindError
from .job import Job
from .spec import PATH_FIELDS
from .tables import SharedTable

MOST_JOBS = 10_000
_INDEX = "array_index"


class JobArray(list):  # type: ignore[type-arg]
    """The Jobs of an array in their order; in place of one that was refused its error. `settings` has the values of each.

    Threads: confined to one.
    """

    def __init__(self, id: str, settings: List[Dict[str, Any]]):
        super().__init__()
        self.id = id
        self.settings = settings

    @property
    def jobs(self) -> List[Job]:
        """Those that were not refused."""
        return [job for job in self if isinstance(job, Job)]

    @property
    def errors(self) -> List[TraindError]:
        return [error for error in self if isinstance(error, TraindError)]

    def cancel(self) -> int:
        """Cancels the Jobs that have not ended, those that wait for others first; says how many."""
        cancelled = 0
        for job in reversed(self.jobs):
            if not job.refresh().ended:
                job.cancel()
                cancelled += 1
        return cancelled


def combinations(fields: Mapping[str, Iterable[Any]]) -> List[Dict[str, Any]]:
    """The settings of each Job: all combinations, the values of the last field changing fastest."""
    values = {}
    for path, of_field in fields.items():
        if isinstance(of_field, (str, bytes)) or not isinstance(of_field, Iterable):
            raise TypeError(f"{path}: an array needs a list of values, not {of_field!r}")
        values[path] = list(itertools.islice(of_field, MOST_JOBS + 1))
        if not values[path]:
            raise ValueError(f"{path}: the list of values is empty")
    if not values:
        raise ValueError("an array needs a field with values: {'train.learning_rate': [0.1, 0.01]}")
    count = 1
    for of_field in values.values():
        count *= len(of_field)
    if count > MOST_JOBS:
        raise ValueError(f"more than {MOST_JOBS} Jobs in one array")
    return [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]


def with_setting(spec: Dict[str, Any], path: str, value: Any) -> Dict[str, Any]:
    """A copy of the spec in which the field has the value; what it does not change is shared."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**spec, name: value}
    inner = spec.get(name)
    if inner is not None and not isinstance(inner, dict):
        raise TypeError(f"{path}: {name} is {inner!r}, and no dict that could have {rest}")
    return {**spec, name: with_setting(inner or {}, rest, value)}


def sharing_tables(spec: Dict[str, Any]) -> Dict[str, Any]:
    """A copy of the spec whose tables are written once, however many Jobs have them."""
    for path in PATH_FIELDS:
        value: Any = spec
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, (str, os.PathLike)):
            spec = with_setting(spec, path, SharedTable(value))
    return spec


def spec_of(spec: Dict[str, Any], settings: Dict[str, Any], array: str, index: int, name: Optional[str],
            before: Optional[str]) -> Dict[str, Any]:
    """The spec of one Job. before: the Job after whose end it begins, however that is."""
    for path, value in settings.items():
        spec = with_setting(spec, path, value)
    spec = {**spec, "labels": {**(spec.get("labels") or {}), "array": array, _INDEX: str(index)}}
    if name is not None:
        spec["name"] = f"{name}-{index}"
    if before is not None:
        spec["after"] = {"jobs": [before], "end": "any"}
    return spec
