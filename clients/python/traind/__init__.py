"""Train models against a deadline: the client of the daemon traind.

    import traind
    traind.start()                                                  # or traind.connect("http://HOST:PORT")
    predictions = traind.train(frame, target="income", budget="60s", test=other)

Nothing but Python is needed. pandas, tqdm, matplotlib, scikit-learn and mlflow are used where they are installed.
"""
from __future__ import annotations

import os
from typing import Any, Optional, Sequence

from .client import Client, TraindWarning
from .discovery import find_url
from .errors import (ConflictError, DataFolderError, JobFailedError, LimitError, NotFoundError, Place, ServerNotFoundError,
                     SpecError, StateError, TraindError, UnreachableError, WaitTimeoutError)
from .job import Job
from .job_array import JobArray
from .local import LocalServer

__version__ = "0.1.0"

__all__ = ["Client", "ConflictError", "DataFolderError", "Job", "JobArray", "JobFailedError", "LimitError", "LocalServer",
           "NotFoundError", "Place", "ServerNotFoundError", "SpecError", "StateError", "TraindError", "TraindWarning",
           "UnreachableError", "WaitTimeoutError", "connect", "start", "train", "TraindClassifier", "TraindRegressor"]

_started: Optional[Client] = None


def _token_of(token: Optional[str], token_file: Optional[str]) -> Optional[str]:
    path = token_file or (None if token else os.environ.get("TRAIND_TOKEN_FILE"))
    if not path:
        return token or os.environ.get("TRAIND_TOKEN")
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def connect(url: Optional[str] = None, data_folder: Optional[str] = None, timeout: float = 30.0,
            token: Optional[str] = None, token_file: Optional[str] = None, ca: Optional[str] = None) -> Client:
    """The server at `url`; without it that of $TRAIND_URL, that of start(), or the one on this machine.

    data_folder: where tables are written for it to read; $TRAIND_DATA, or .traind in the current folder. It must lie
    below a --data-root of the server. token: its text, for a server that needs one; or token_file, or
    $TRAIND_TOKEN_FILE, or $TRAIND_TOKEN. ca: the server's ca.pem, or $TRAIND_CA. ServerNotFoundError: there is none,
    and what to do.
    """
    running = _started if _started and _started.server.running() else None
    found = find_url(url, running.url if running else None)
    if running and found == running.url and data_folder is None:
        return running
    return Client(found, data_folder, timeout, token=_token_of(token, token_file),
                  ca=ca or os.environ.get("TRAIND_CA"))


def start(state: Optional[str] = None, data_roots: Sequence[str] = (), slots: Optional[int] = None,
          program: Optional[str] = None, arguments: Sequence[str] = ()) -> Client:
    """Starts a standalone traind; it ends with this program, by client.close(), or with a `with` block.

    The program is `program`, the one below $TRAIND_HOME, or the one on PATH. state: its folder; without one it is
    temporary and goes with the server. data_roots: folders whose files it may read, besides the tables of this
    program; the current folder if there is none. From now on connect() and train() use this server.
    """
    global _started
    server = LocalServer(state, data_roots, slots, program, arguments)
    _started = Client(server.url, server=server)
    return _started


def train(rows: Any, /, target: Any = None, budget: Any = "60s", test: Any = None, metric: Optional[str] = None,
          task: Any = None, progress: bool = True, **spec: Any) -> Any:
    """connect().train(...): trains, and returns the predictions for `test`, or the Job where there is none."""
    return connect()._train(3, rows, target, budget, test, metric, task, progress, spec)


def __getattr__(name: str) -> Any:
    if name in ("TraindClassifier", "TraindRegressor"):  # scikit-learn is imported only for these
        from . import estimators
        return getattr(estimators, name)
    raise AttributeError(f"module 'traind' has no attribute '{name}'")
