"""HTTP and JSON over the standard library."""
from __future__ import annotations

import http.client
import ipaddress
import json
import random
import socket
import ssl
import time
import urllib.parse
from typing import Any, Dict, Iterator, NamedTuple, Optional

from .errors import TraindError, UnreachableError, error_of

# A refused or broken connection is tried again for this long, as a server that restarts needs about a second.
RETRY_S = 10.0


class Event(NamedTuple):
    """One event of a stream (Server-Sent Events)."""
    name: str
    id: str
    data: str


def read_events(lines: Iterator[bytes]) -> Iterator[Event]:
    """Parses the lines of a text/event-stream."""
    name, last_id, data = "message", "", []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield Event(name, last_id, "\n".join(data))
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            name = value
        elif field == "id":
            last_id = value
        elif field == "data":
            data.append(value)


def _decoded(content: bytes) -> Any:
    text = content.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_local(host: str) -> bool:
    """Whether the name or address is of this machine's loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Transport:
    """Calls of one server. Each call has a connection of its own. ca: a file with the certificates that are trusted
    instead of the system's.

    Threads: any.
    """

    def __init__(self, url: str, timeout: float = 30.0, retry_s: float = RETRY_S, token: Optional[str] = None,
                 ca: Optional[str] = None):
        if "://" not in url:
            url = "http://" + url
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not the address of a server; write it like http://127.0.0.1:7071")
        self.url = url.rstrip("/")
        self.host = parts.hostname
        self._parts = parts
        self._timeout = timeout
        self._retry_s = retry_s
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        if token and parts.scheme != "https" and not is_local(parts.hostname):
            raise ValueError(f"a token would travel in plain text to {self.url}; the address must begin with https://")
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None

    def _connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self.host, self._parts.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self.host, self._parts.port, timeout=timeout)

    def _send(self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str],
              timeout: Optional[float]) -> http.client.HTTPResponse:
        """A response that is not an error; the caller reads and closes it."""
        connection = self._connection(timeout)
        connection.request(method, self._parts.path.rstrip("/") + path, body=body, headers={**headers, **self._headers})
        response = connection.getresponse()
        if response.status >= 400:
            with response:
                raise error_of(response.status, _decoded(response.read()))
        return response

    def open(self, method: str, path: str, body: Optional[bytes] = None, headers: Optional[Dict[str, str]] = None,
             timeout: Optional[float] = None, repeatable: bool = True) -> http.client.HTTPResponse:
        """Works like _send, but is repeated while the server is not there; only `repeatable` calls are sent twice."""
        end = time.monotonic() + self._retry_s
        pause = 0.05
        while True:
            try:
                return self._send(method, path, body, headers or {}, timeout or self._timeout)
            except ssl.SSLCertVerificationError as e:
                raise UnreachableError(f"{self.url} shows a certificate that is not trusted ({e.verify_message}); give "
                                       "connect() the ca.pem of that traind as ca=, or set $TRAIND_CA",
                                       "UNAVAILABLE") from e
            except (OSError, http.client.HTTPException, UnreachableError) as e:
                never_arrived = isinstance(e, ConnectionRefusedError)
                timed_out = isinstance(e, socket.timeout)
                if time.monotonic() + pause > end or timed_out or not (repeatable or never_arrived):
                    if isinstance(e, TraindError):
                        raise
                    raise UnreachableError(f"cannot reach traind at {self.url}: {e or type(e).__name__}",
                                           "UNAVAILABLE") from e
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, 1.0)

    def json(self, method: str, path: str, body: Any = None, query: Optional[Dict[str, Any]] = None,
             headers: Optional[Dict[str, str]] = None, repeatable: Optional[bool] = None) -> Any:
        """The JSON that answers. body: a dict that is sent as JSON, a text that is sent as YAML, or nothing.

        repeatable: whether the call may be sent twice; by default a POST may with an Idempotency-Key alone.
        """
        headers = dict(headers or {})
        content = None
        if body is not None:
            is_text = isinstance(body, str)
            content = (body if is_text else json.dumps(body)).encode()
            headers["Content-Type"] = "application/yaml" if is_text else "application/json"
        if query:
            path += "?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None}, doseq=True)
        if repeatable is None:
            repeatable = method != "POST" or "Idempotency-Key" in headers
        with self.open(method, path, content, headers, repeatable=repeatable) as response:
            return _decoded(response.read())

    def events(self, path: str, last_id: str = "", silence: float = 60.0) -> Iterator[Event]:
        """The events of a stream until the server closes it. UnreachableError: it broke; begin again with the last id."""
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        with self.open("GET", path, headers=headers, timeout=silence) as response:
            try:
                yield from read_events(iter(response.readline, b""))
            except (OSError, http.client.HTTPException) as e:
                raise UnreachableError(f"the stream of {self.url}{path} broke: {e}", "UNAVAILABLE") from e
