"""Shows how a Job goes on: a bar of tqdm where that is installed, else a plain line."""
from __future__ import annotations

import datetime
import sys
import time
from typing import Any, Dict, Optional

from .tables import optional_module

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
# Where the output is no terminal, a line is written when the state changes, and then as often.
_LINE_EVERY_S = 10.0


def moment(text: Optional[str]) -> Optional[float]:
    """Seconds since the epoch of a time in the format of RFC 3339."""
    if not text:
        return None
    text = text.replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    if dot:  # Python before 3.11 reads fractions of three or six digits alone
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    return datetime.datetime.fromisoformat(text).timestamp()


def _clock(text: str) -> str:
    return datetime.datetime.fromtimestamp(moment(text) or 0).strftime("%H:%M")


def time_text(seconds: float) -> str:
    """The inverse of moment()."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="milliseconds")


def share_done(job: Dict[str, Any]) -> float:
    """The share of the planned epochs or rounds that are done, from 0 to 1."""
    if job.get("state") in ENDED:
        return 1.0
    folds = [f for f in job.get("folds") or [] if f.get("state") != "DROPPED"]
    shares = []
    for fold in folds:
        progress = fold.get("progress") or {}
        planned = progress.get("planned") or 0
        done = fold.get("state") in ("DONE", "PARTIAL")
        shares.append(1.0 if done else min(1.0, progress.get("done", 0) / planned) if planned else 0.0)
    return sum(shares) / len(shares) if shares else 0.0


def _seconds(value: float) -> str:
    value = max(0, int(value))
    return f"{value // 3600}h{value % 3600 // 60:02d}m" if value >= 3600 else (
        f"{value // 60}m{value % 60:02d}s" if value >= 60 else f"{value}s")


def describe(job: Dict[str, Any]) -> str:
    """A line of text: `RUNNING  folds 2/5  accuracy 0.975  3s left`. The score is the answer's, out of fold."""
    words = [job.get("state") or "?"]
    folds = [f for f in job.get("folds") or [] if f.get("state") != "DROPPED"]
    if folds:
        models = any(f.get("seed") or f.get("trial") for f in folds)
        words.append(f"{'models' if models else 'folds'} {sum(f.get('state') in ('DONE', 'PARTIAL') for f in folds)}/{len(folds)}")
    scores = job.get("scores") or {}
    if isinstance(scores.get("oof"), (int, float)):
        words.append(f"{scores.get('metric') or 'score'} {scores['oof']:.4g}")
    if job.get("state") in ENDED:
        if job.get("quality"):
            words.append(job["quality"])
    elif isinstance(job.get("remaining_s"), (int, float)):
        words.append(f"{_seconds(job['remaining_s'])} left")
    if job.get("pending_reason"):
        lacks = f" ({job['waits_for']})" if job.get("waits_for") else ""
        start = f", expected {_clock(job['expected_start'])}" if job.get("expected_start") else ""
        words.append(f"waits: {job['pending_reason']}{lacks}{start}")
    return "  ".join(words)


class PlainProgress:
    """A line that is redrawn in a terminal; elsewhere a line at each change of state and every ten seconds."""

    def __init__(self, name: str, out: Any = None):
        self._name = name
        self._out = out or sys.stderr
        self._terminal = bool(getattr(self._out, "isatty", lambda: False)())
        self._state = None
        self._shown = 0.0
        self._width = 0

    def update(self, job: Dict[str, Any]) -> None:
        line = f"{self._name} {100 * share_done(job):3.0f}% {describe(job)}"
        if self._terminal:
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif job.get("state") != self._state or time.monotonic() - self._shown >= _LINE_EVERY_S:
            self._out.write(line + "\n")
            self._shown = time.monotonic()
        self._state = job.get("state")
        self._out.flush()

    def close(self) -> None:
        if self._terminal and self._width:
            self._out.write("\n")
            self._out.flush()


class BarProgress:
    """tqdm's bar."""

    def __init__(self, name: str, tqdm: Any, out: Any = None):
        self._bar = tqdm(total=100, desc=name, unit="%", file=out, dynamic_ncols=True,
                         bar_format="{desc} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]{postfix}")

    def update(self, job: Dict[str, Any]) -> None:
        self._bar.set_postfix_str(describe(job), refresh=False)
        self._bar.n = 100 * share_done(job)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class NoProgress:
    def update(self, job: Dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


def make_progress(name: str, shown: bool = True) -> Any:
    if not shown:
        return NoProgress()
    if optional_module("tqdm"):
        from tqdm.auto import tqdm
        return BarProgress(name, tqdm)
    return PlainProgress(name)
