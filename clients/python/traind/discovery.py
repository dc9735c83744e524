"""Finds the server: the argument, $TRAIND_URL, the server that this program has started, or the one on this machine."""
from __future__ import annotations

import http.client
import os
from typing import Optional

from .errors import ServerNotFoundError

# traind --http listens here unless the flag names another address.
DEFAULT_URL = "http://127.0.0.1:7071"

_NOT_FOUND = """no traind was found: $TRAIND_URL is not set, and nothing answers at {url}
  start one in Python:      traind.start()
  or in a shell:            traind --standalone --state ~/traind-state --data-root .
  or name one that runs:    traind.connect("http://HOST:PORT"), as its line 'traind ready ... http=HOST:PORT' says"""


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
    if answers(DEFAULT_URL):
        return DEFAULT_URL
    raise ServerNotFoundError(_NOT_FOUND.format(url=DEFAULT_URL))
