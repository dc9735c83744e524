"""What traind has to do, asked of it by trainctl."""
from __future__ import annotations

import json
import subprocess
from typing import Any, Dict, List, Sequence

from .plan import Seen

# What a slot does not help against.
_OTHER_REASONS = {"OTHER_JOBS", "QUOTA"}
_OPEN_FOLDS = {"PENDING", "RUNNING"}


class TraindError(Exception):
    """traind could not be asked."""


def wanted_by(job: Dict[str, Any], device: str) -> int:
    """The slots that a Job could use now."""
    if job.get("pending_reason") in _OTHER_REASONS:
        return 0
    if job.get("device") and job["device"] != device:
        return 0
    slots = max(1, job.get("slots") or 1)
    folds = [fold for fold in job.get("folds") or [] if fold["state"] in _OPEN_FOLDS]
    # Reading the data and predicting take no slot, but somebody has to do them.
    return max(1, slots * len(folds))


def seen_of(jobs: Sequence[Dict[str, Any]], workers: Sequence[Dict[str, Any]], device: str, name: str) -> Seen:
    """name: of those that were lent."""
    there = [w for w in workers if w.get("connected")]
    return Seen(wanted=sum(wanted_by(job, device) for job in jobs),
                open=sum(1 for w in there if not w.get("mode") for slot in w.get("slots") or []
                         if slot["device"] == device),
                attached=frozenset(w["lent_as"][len(name) + 1:] for w in there
                                   if (w.get("lent_as") or "").startswith(name + "/")))


class Traind:
    def __init__(self, trainctl: str, arguments: Sequence[str], device: str, name: str):
        self._name = name
        self._command = [trainctl, *arguments]
        self._device = device

    def seen(self) -> Seen:
        jobs = self._list("list", "--state", "queued,planning,running")
        return seen_of(jobs, self._list("workers"), self._device, self._name)

    def _list(self, *arguments: str) -> List[Dict[str, Any]]:
        try:
            ran = subprocess.run([*self._command, *arguments, "-o", "json"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TraindError(str(error)) from error
        if ran.returncode != 0:
            raise TraindError(ran.stderr.strip() or f"trainctl ended with {ran.returncode}")
        found = json.loads(ran.stdout)
        return found["jobs"] if isinstance(found, dict) else found
