"""Starts a standalone traind of this program's own."""
from __future__ import annotations

import atexit
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Dict, List, Optional, Sequence

from .discovery import ready_fields
from .errors import ServerNotFoundError, TraindError

# It outlives this program: when the pipe closes without a word, it stops the daemon and removes a temporary folder.
_GUARD = """read -r word && exit 0
kill -TERM "$1" 2>/dev/null
if [ -n "$2" ]; then while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; rm -rf -- "$2"; fi"""


def program_path(program: Optional[str] = None) -> str:
    """The program traind: the argument, below $TRAIND_HOME, or on PATH."""
    home = os.environ.get("TRAIND_HOME", "")
    places = [program] if program else [os.path.join(home, p) for p in ("bin/traind", "server/traind", "traind") if home]
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    found = None if program else shutil.which("traind")
    if not found:
        looked = f"there is no program at {program}" if program else (
            f"there is no traind below $TRAIND_HOME ({home or 'not set'}) or on PATH")
        raise ServerNotFoundError(f"{looked}; set TRAIND_HOME to the unpacked release, the folder that has bin/traind")
    return found


def _ready_line(process: subprocess.Popen, log: str, timeout: float) -> Dict[str, str]:
    """The fields of 'traind ready grpc=HOST:PORT http=HOST:PORT pid=N'."""
    end = time.monotonic() + timeout
    text = b""
    while b"\n" not in text:
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(process.stdout.fileno(), 4096) if readable else b""
        if not chunk:  # the time is over, or it has ended
            break
        text += chunk
    fields = ready_fields(text.decode("utf-8", "replace").partition("\n")[0])
    if fields is None:
        with open(log, encoding="utf-8", errors="replace") as f:
            end_of_log = "".join(f.readlines()[-5:]).strip()
        raise TraindError(f"traind did not start: {end_of_log or 'it said nothing'} (log: {log})")
    return fields


class LocalServer:
    """A running traind. It ends with stop(), with this program, or with the `with` block.

    Threads: confined to one, but stop() may be called by any.
    """

    def __init__(self, state: Optional[str] = None, data_roots: Sequence[str] = (), slots: Optional[int] = None,
                 program: Optional[str] = None, arguments: Sequence[str] = (), timeout: float = 30.0):
        path = program_path(program)
        self._temporary = None if state else tempfile.mkdtemp(prefix="traind-")
        self.state = os.path.abspath(state or os.path.join(self._temporary, "state"))
        self.data_folder = os.path.join(self._temporary or self.state, "tables")
        os.makedirs(self.data_folder, exist_ok=True)
        command = [path, "--standalone", "--state", self.state, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        for root in [self.data_folder, *(data_roots or [os.getcwd()])]:
            command += ["--data-root", os.path.abspath(root)]
        if slots is not None:
            command += ["--slots", str(slots)]
        try:
            self._launch(command + list(arguments), timeout)
        except BaseException:
            self._remove_temporary()
            raise
        atexit.register(self.stop)

    def _launch(self, command: List[str], timeout: float) -> None:
        self.log = os.path.join(self._temporary or self.state, "traind.log")
        os.makedirs(self.state, exist_ok=True)
        with open(self.log, "ab") as log:
            # In a session of its own Ctrl-C in a terminal or a notebook does not reach it.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                             start_new_session=True)
        self._guard = None
        try:
            fields = _ready_line(self._process, self.log, timeout)
            if fields.get("http", "-") == "-":
                raise TraindError("this traind has no HTTP gateway; a newer one is needed")
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            raise
        self.pid = self._process.pid
        self.url = "http://" + fields["http"]
        self.grpc = fields["grpc"]
        self._guard = subprocess.Popen(["/bin/sh", "-c", _GUARD, "sh", str(self.pid), self._temporary or ""],
                                       stdin=subprocess.PIPE, start_new_session=True)

    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self, grace: float = 20.0) -> None:
        """Stops it in order: folds save a checkpoint, and the answers that exist are published."""
        atexit.unregister(self.stop)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()
        if self._guard and self._guard.poll() is None:
            self._guard.communicate(b"stopped\n")
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> "LocalServer":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<traind {self.url} pid {self.pid} state {self.state}{'' if self.running() else ' (ended)'}>"
