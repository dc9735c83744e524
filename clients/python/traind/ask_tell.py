"""Drives the trials of a Job from outside: somebody asks for settings, and is told what they scored."""
from __future__ import annotations

import time
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

from .errors import LimitError, StateError, UnreachableError
from .progress import ENDED

_UNSETTLED = ("OPEN", "WAITING", "RUNNING")

# Returns a token and the settings of the next trial; None: there are no more.
Ask = Callable[[], Optional[Tuple[Any, Dict[str, Any]]]]
# Takes the token and the trial as the server tells it: index, settings, state, score, gain, scored_folds.
Tell = Callable[[Any, Dict[str, Any]], None]


def setting_text(value: Any) -> str:
    """A value as a spec writes it."""
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):  # of numpy
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(setting_text(item) for item in value) + "]"
    return str(value)


class AskTell:
    """One drive of a Job. Threads: confined to one."""

    def __init__(self, job: Any, ask: Ask, tell: Tell, poll_s: float):
        self._job, self._ask, self._tell, self._poll_s = job, ask, tell, poll_s
        self._tokens: Dict[int, List[Any]] = {}  # by the number of the trial, until its result is told
        self._asks = True

    def run(self) -> None:
        while True:
            try:
                listed = self._job.list_trials()
            except UnreachableError:  # it restarts; its Job goes on
                time.sleep(self._poll_s)
                continue
            over = listed["state"] in ENDED
            self._tell_settled(listed["trials"], over)
            if over:
                return
            wanted = (listed.get("search") or {}).get("wanted_trials") or 0
            while self._asks and wanted > 0:
                self._propose()
                wanted -= 1
            time.sleep(self._poll_s)

    def _propose(self) -> None:
        asked = self._ask()
        if asked is None:
            self._asks = False
            self._act_unless_over(self._job.finish)
            return
        token, settings = asked
        reply = self._act_unless_over(lambda: self._job.propose(settings))
        if reply is None:
            self._tell(token, {"state": "WAITING", "settings": settings})
        else:
            self._tokens.setdefault(reply["trial"]["index"], []).append(token)

    def _act_unless_over(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (StateError, LimitError):  # its time is over, or all its trials have settings
            self._asks = False
            return None

    def _tell_settled(self, trials: List[Dict[str, Any]], over: bool) -> None:
        for trial in trials:
            if over or trial["state"] not in _UNSETTLED:
                for token in self._tokens.pop(trial["index"], []):
                    self._tell(token, trial)


def propose(job: Any, settings: Dict[str, Any], request_id: Optional[str], patience_s: float = 60.0) -> Dict[str, Any]:
    """Proposes a trial, and goes on while the server restarts: a repeated call makes no second trial."""
    body = {"settings": {name: setting_text(value) for name, value in settings.items()},
            "request_id": request_id or uuid.uuid4().hex}
    end = time.monotonic() + patience_s
    while True:
        try:
            return job._transport.json("POST", job._path("/trials"), body, repeatable=True)
        except UnreachableError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.2)
