"""How many Workers to ask for, and which requests to take back: a function of what there is, and of the time.

Times are seconds of one clock that never goes back.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Optional, Sequence, Set

WAITING = "waiting"  # the engine has not started it yet
RUNNING = "running"


@dataclass(frozen=True)
class Lent:
    """A Worker that was asked of the engine, and that the engine still knows."""
    id: str
    state: str


@dataclass(frozen=True)
class Limits:
    least: int = 0         # Workers that are kept without any work
    most: int = 8          # Workers at once
    slots: int = 1         # of each Worker
    at_once: int = 4       # requests in one round
    patience: float = 60   # before requests that are not needed any more are taken back
    attach: float = 90     # a Worker that was started is attached after so long, or something is wrong
    lived: float = 60      # one that is gone earlier has failed
    first_pause: float = 30  # after a failure; it doubles with each further one
    longest_pause: float = 900


@dataclass(frozen=True)
class Seen:
    """What traind has: slots that Jobs could use now, slots of Workers that take Tasks, and which of those that were
    lent are attached, whatever they take."""
    wanted: int
    open: int
    attached: FrozenSet[str] = frozenset()


@dataclass
class Round:
    submit: int = 0
    cancel: List[str] = field(default_factory=list)
    why: str = ""


class Planner:
    """Remembers when it first saw each Worker, and how often they failed."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.failures = 0
        self._first: Dict[str, float] = {}    # id: first seen
        self._running: Dict[str, float] = {}  # id: first seen running
        self._cancelled: Set[str] = set()
        self._not_before = -math.inf
        self._excess_since: Optional[float] = None

    def failed(self, now: float) -> None:
        """A request was refused, or a Worker ended at once."""
        pause = min(self.limits.longest_pause, self.limits.first_pause * 2 ** self.failures)
        self.failures += 1
        self._not_before = now + pause

    def round(self, seen: Seen, lent: Sequence[Lent], now: float) -> Round:
        limits = self.limits
        self._follow(lent, now)
        waiting = [w for w in lent if w.state == WAITING]
        away = [w for w in lent if w.state == RUNNING and w.id not in seen.attached]
        starting = [w for w in away if now - self._running[w.id] < limits.attach]
        coming = limits.slots * (len(waiting) + len(starting))
        short = math.ceil(max(0, seen.wanted - seen.open - coming) / limits.slots)
        short = max(short, limits.least - len(lent))
        room = limits.most - len(lent)
        lost = [w.id for w in away if w not in starting]
        plan = Round(why=f"{seen.wanted} slots wanted, {seen.open} open, {len(waiting)} Workers waiting, "
                         f"{len(starting)} starting")
        if short > 0:
            self._excess_since = None
            if room <= 0:
                plan.why += f"; there are {limits.most} already"
            elif lost and not any(w.id in seen.attached for w in lent):
                plan.why += f"; further ones would not help: {', '.join(lost)} run and are not attached, see their logs"
            elif now < self._not_before:
                plan.why += f"; after {self.failures} failures it waits {math.ceil(self._not_before - now)} s"
            else:
                plan.submit = min(short, room, limits.at_once)
                if lost:
                    plan.why += f"; {', '.join(lost)} run and are not attached"
            return plan
        needless = (seen.open + limits.slots * len(waiting) - seen.wanted) // limits.slots
        needless = min(needless, len(waiting), len(lent) - limits.least)
        if needless <= 0:
            self._excess_since = None
        elif self._excess_since is None:
            self._excess_since = now
        elif now - self._excess_since >= limits.patience:
            newest = sorted(waiting, key=lambda w: self._first[w.id], reverse=True)
            plan.cancel = [w.id for w in newest[:needless]]
            self._cancelled.update(plan.cancel)
        return plan

    def _follow(self, lent: Sequence[Lent], now: float) -> None:
        alive = {w.id for w in lent}
        for id in set(self._first) - alive:
            began = self._running.pop(id, None)
            del self._first[id]
            cancelled = id in self._cancelled
            self._cancelled.discard(id)
            if cancelled:
                continue
            if began is None or now - began < self.limits.lived:
                self.failed(now)
            else:
                self.failures = 0
        for worker in lent:
            self._first.setdefault(worker.id, now)
            if worker.state == RUNNING:
                self._running.setdefault(worker.id, now)
                if now - self._running[worker.id] >= self.limits.lived:
                    self.failures = 0
