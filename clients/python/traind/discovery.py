"""Finds the server: the argument, $TRAIND_URL, the server that this program has started, or the one on this machine.

A traind of the same user is found by its process: of the ports on which it listens, one answers HTTP. One that belongs to
another user, such as a system service, is found at DEFAULT_URL.
"""
from __future__ import annotations

import http.client
import os
from typing import Dict, List, Optional

from .errors import ServerNotFoundError

# Where the service of the Debian package listens.
DEFAULT_URL = "http://127.0.0.1:7071"
_PROC = "/proc"
_LISTENS = "0A"  # a state in /proc/net/tcp

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


def _is_traind(pid: str) -> bool:
    try:
        with open(os.path.join(_PROC, pid, "cmdline"), encoding="utf-8", errors="replace") as f:
            return os.path.basename(f.read().partition("\0")[0]) == "traind"
    except OSError:
        return False


def _listening_addresses() -> Dict[str, str]:
    """The socket -> HOST:PORT of all sockets that listen for TCP. A socket is named as in /proc/PID/fd."""
    found = {}
    try:
        with open(os.path.join(_PROC, "net", "tcp"), encoding="ascii") as f:
            rows = [line.split() for line in f.readlines()[1:]]
    except OSError:
        return {}
    for row in rows:
        if row[3] == _LISTENS:
            host, port = row[1].split(":")
            address = ".".join(str(byte) for byte in reversed(bytes.fromhex(host)))
            found[f"socket:[{row[9]}]"] = f"{'127.0.0.1' if address == '0.0.0.0' else address}:{int(port, 16)}"
    return found


def _sockets_of(pid: str) -> List[str]:
    folder = os.path.join(_PROC, pid, "fd")
    try:
        return [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)]
    except OSError:  # it is another user's, or has ended
        return []


def local_urls() -> List[str]:
    """The addresses of the traind processes of this user."""
    urls = []
    for pid in sorted((name for name in os.listdir(_PROC) if name.isdigit() and _is_traind(name)), key=int):
        listening = _listening_addresses()
        ports = sorted({listening[socket] for socket in _sockets_of(pid) if socket in listening})
        urls += [url for url in (f"http://{address}" for address in ports) if answers(url)][:1]
    return urls


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
