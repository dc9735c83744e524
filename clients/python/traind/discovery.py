"""Finds the server: the argument, $TRAIND_URL, the server that this program has started, or the one on this machine.

A traind on this machine writes its ready line into the file `ready` of its state folder. It is found by its process: the
flag --state names the folder. One that belongs to another user, such as a system service, is found at DEFAULT_URL.
"""
from __future__ import annotations

import http.client
import os
from typing import Dict, List, Optional

from .errors import ServerNotFoundError

# Where the service of the Debian package listens.
DEFAULT_URL = "http://127.0.0.1:7071"
_PROC = "/proc"

_NOT_FOUND = """no traind was found: $TRAIND_URL is not set, no traind of yours runs here, and nothing answers at {url}
  start one in Python:      traind.start()
  or in a shell:            traind --standalone --state ~/traind-state --data-root .
  or name one that runs:    traind.connect("http://HOST:PORT"), as its line 'traind ready ... http=HOST:PORT' says"""


def ready_fields(line: str) -> Optional[Dict[str, str]]:
    """grpc, http and pid of 'traind ready grpc=HOST:PORT http=HOST:PORT pid=N'; None: it is no such line."""
    words = line.split()
    if words[:2] != ["traind", "ready"]:
        return None
    return dict(word.split("=", 1) for word in words[2:] if "=" in word)


def _state_of(arguments: List[str]) -> Optional[str]:
    """The value of --state among the arguments of a process."""
    for argument, following in zip(arguments, [*arguments[1:], ""]):
        if argument == "--state":
            return following
        if argument.startswith("--state="):
            return argument.partition("=")[2]
    return None


def _url_of(pid: str) -> Optional[str]:
    """The HTTP address of the process, where it is a traind whose files this user may read."""
    folder = os.path.join(_PROC, pid)
    try:
        with open(os.path.join(folder, "cmdline"), encoding="utf-8", errors="replace") as f:
            arguments = f.read().split("\0")
        state = _state_of(arguments)
        if os.path.basename(arguments[0]) != "traind" or not state:
            return None
        with open(os.path.join(os.readlink(os.path.join(folder, "cwd")), state, "ready"), encoding="utf-8") as f:
            fields = ready_fields(f.readline())
    except OSError:
        return None
    if not fields or fields.get("pid") != pid or fields.get("http", "-") == "-":
        return None
    return "http://" + fields["http"]


def local_urls() -> List[str]:
    """The addresses of the traind processes of this user."""
    pids = sorted((name for name in os.listdir(_PROC) if name.isdigit()), key=int)
    return [url for url in map(_url_of, pids) if url]


def answers(url: str, timeout: float = 1.0) -> bool:
    """Whether a traind is there."""
    connection = http.client.HTTPConnection(url.partition("://")[2], timeout=timeout)
    try:
        connection.request("GET", "/v1/jobs?page_size=1")
        response = connection.getresponse()
        return response.status == 200 and b'"jobs"' in response.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def find_url(url: Optional[str] = None, started: Optional[str] = None) -> str:
    """The address to use. started: that of the server that this program has started."""
    for known in (url, os.environ.get("TRAIND_URL"), started):
        if known:
            return known
    running = local_urls()
    if len(running) > 1:
        raise ServerNotFoundError("several traind run here; set $TRAIND_URL, or name one in traind.connect(): "
                                  + ", ".join(running))
    if running:
        return running[0]
    if answers(DEFAULT_URL):
        return DEFAULT_URL
    raise ServerNotFoundError(_NOT_FOUND.format(url=DEFAULT_URL))
