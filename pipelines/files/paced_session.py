"""A session of requests that leaves a server which sends too slowly.

The timeout of a socket begins anew with each byte, so a server that sends one byte a second is never
silent for long. Here all that is read of a connection is counted, headers too, and the seconds that
were spent waiting for it; what this machine needs to write it down does not count.
"""

import functools
import http.client
import io
import socket
import time
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter

WINDOW_SECONDS = 120
"""Twice the silence that `transfer.ANSWER_SECONDS` allows, so that one silence alone never fails."""

LEAST_WINDOW_BYTES = 120 << 10
"""1 KiB/s on average: slower than any modem, and a file of 1 GiB would take twelve days."""

Clock = Callable[[], float]


class TooSlowError(Exception):
    """A server sent fewer than `LEAST_WINDOW_BYTES` in `WINDOW_SECONDS`.

    It is no `OSError`, which urllib3 and requests would put into errors of their own.
    """


class Pace:
    """Counts what comes, window after window.

    Args:
        clock: seconds since any moment.
    """

    def __init__(self, clock: Clock = time.monotonic):
        self._clock = clock
        self._bytes, self._seconds = 0, 0.0

    def read(self, raw: io.RawIOBase, buffer: memoryview) -> int | None:
        """Reads from a connection into a buffer.

        Raises:
            TooSlowError: a window is over, and too little came in it.
        """
        began = self._clock()
        size = raw.readinto(buffer)
        self._bytes += size or 0
        self._seconds += self._clock() - began
        if size and self._seconds >= WINDOW_SECONDS:
            if self._bytes < LEAST_WINDOW_BYTES:
                raise TooSlowError
            self._bytes, self._seconds = 0, 0.0
        return size


def paced_session(pace: Pace) -> requests.Session:
    """Returns a session whose requests raise `TooSlowError` as a pace does."""
    session = requests.Session()
    adapter = _PacedAdapter(pace)
    for beginning in ('http://', 'https://'):
        session.mount(beginning, adapter)
    # To go on to another address, requests would read the whole body of a redirection.
    session.hooks['response'].append(_leave_redirection)
    return session


def _leave_redirection(response: requests.Response, **_: object) -> None:
    if response.is_redirect:
        response.close()


class _PacedAdapter(HTTPAdapter):
    """Opens connections whose answers are read at a pace."""

    def __init__(self, pace: Pace):
        self._answer = functools.partial(_PacedAnswer, pace)
        super().__init__()

    def get_connection_with_tls_context(self, request, verify, proxies=None, cert=None):
        pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
        kind = pool.ConnectionCls
        pool.ConnectionCls = type(
            kind.__name__, (kind,), {'response_class': staticmethod(self._answer)}
        )
        return pool


class _PacedAnswer(http.client.HTTPResponse):
    """An answer of which every byte, from its first line on, is counted."""

    def __init__(self, pace: Pace, connection: socket.socket, *args: Any, **kwargs: Any):
        super().__init__(connection, *args, **kwargs)
        self.fp = io.BufferedReader(_PacedReader(self.fp.detach(), pace))


class _PacedReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, pace: Pace):
        self._raw, self._pace = raw, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._pace.read(self._raw, buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
