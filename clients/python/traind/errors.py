"""The errors of the client: each class is a thing that the caller can do something about."""
from __future__ import annotations

import re
from typing import Any, List, NamedTuple, Optional


class Place(NamedTuple):
    """One mistake of a spec: the field's path (`data.target`), and line and column where the spec was a text."""
    path: str
    message: str
    line: Optional[int] = None
    column: Optional[int] = None

    def __str__(self) -> str:
        position = "" if self.line is None else f"{self.line}:{self.column}: "
        return position + (f"{self.path}: " if self.path else "") + self.message


class TraindError(Exception):
    """The base of all others. `status` is the word of the gRPC status, `details` what the server added."""

    def __init__(self, message: str, status: str = "", details: Optional[List[Any]] = None):
        super().__init__(message)
        self.status = status
        self.details = details or []


class ServerNotFoundError(TraindError):
    """No server was named, and none was found on this machine."""


class UnreachableError(TraindError, ConnectionError):
    """The server does not answer; the call may be repeated."""


class SpecError(TraindError, ValueError):
    """The request is wrong; `places` names each mistake."""

    def __init__(self, message: str, status: str = "INVALID_ARGUMENT", details: Optional[List[Any]] = None,
                 places: Optional[List[Place]] = None):
        super().__init__(message, status, details)
        self.places = places if places is not None else places_of(message, self.details)


class DataFolderError(SpecError):
    """The server may not read the file, because it lies outside of its data roots."""


class NotFoundError(TraindError, LookupError):
    """There is no such Job, Worker or file."""


class ConflictError(TraindError):
    """The request id belongs to another spec."""


class StateError(TraindError):
    """The Job is not in a state that allows this; a repeated call is refused as well."""


class LimitError(TraindError):
    """A queue, a quota, a disk or a message is full."""


class WaitTimeoutError(TraindError, TimeoutError):
    """The Job has not ended within the given time. It goes on."""


class JobFailedError(TraindError):
    """The Job ended without a prediction; `job` is that Job."""

    def __init__(self, message: str, job: Any):
        super().__init__(message, "FAILED")
        self.job = job


_CLASSES = {
    "INVALID_ARGUMENT": SpecError,
    "OUT_OF_RANGE": SpecError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": ConflictError,
    "FAILED_PRECONDITION": StateError,
    "ABORTED": StateError,
    "RESOURCE_EXHAUSTED": LimitError,
    "UNAVAILABLE": UnreachableError,
    "DEADLINE_EXCEEDED": UnreachableError,
}

_OUTSIDE = "outside the data roots"
# traind writes a mistake as [FILE:LINE:COLUMN: error: ][PATH: ]MESSAGE
_POSITION = re.compile(r"^(?:[^\s:]*:)?(\d+):(\d+): (?:error: )?")
_PATH = re.compile(r"^([a-z_][a-z0-9_]*(?:[.\[][a-z0-9_.\[\]*]*)?): ")


def _place(line: str) -> Place:
    number = column = None
    position = _POSITION.match(line)
    if position:
        number, column = int(position.group(1)), int(position.group(2))
        line = line[position.end():]
    path = _PATH.match(line)
    if path:
        return Place(path.group(1), line[path.end():], number, column)
    return Place("", line, number, column)


def _number(text: Any) -> Optional[int]:
    return int(text) if str(text or "").isdigit() else None


def places_of(message: str, details: List[Any]) -> List[Place]:
    """The places that the details name (an ErrorInfo each), else those of the message's lines."""
    found = []
    for detail in details:
        fields = detail.get("metadata") if isinstance(detail, dict) else None
        if isinstance(fields, dict) and fields.get("field"):
            said = _place(fields.get("message") or message).message
            found.append(Place(fields["field"], said, _number(fields.get("line")), _number(fields.get("column"))))
    return found or [_place(line) for line in message.splitlines() if line.strip()]


def error_of(code: int, body: Any) -> TraindError:
    """The error that a reply with the HTTP status `code` stands for; body: its JSON, or a text."""
    fields = body.get("error") if isinstance(body, dict) else None
    if not isinstance(fields, dict):
        status = {404: "NOT_FOUND", 409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
                  504: "DEADLINE_EXCEEDED", 400: "INVALID_ARGUMENT"}.get(code, "")
        fields = {"status": status, "message": str(body).strip() or f"HTTP status {code}"}
    status = fields.get("status") or ""
    message = fields.get("message") or f"HTTP status {code}"
    kind = _CLASSES.get(status, TraindError)
    if kind is SpecError and _OUTSIDE in message:
        kind = DataFolderError
        message += ("\nStart traind with --data-root FOLDER for the folder that has the file. Frames are written into "
                    "the data_folder of traind.connect(), or of $TRAIND_DATA")
    return kind(message, status, fields.get("details") or [])
