"""A time limit for a whole call, and an end to calls in flight: neither is the client's to give.

A timeout of the client begins anew with each piece that is sent or received, so that a server which says one byte of
its headers after the other is waited for without end; and closing the client wakes nobody who waits for its socket.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import httpcore2

MOST_UNSENT = 1 << 16
"""Bytes that wait for the next ones."""


class Deadlines(httpcore2.NetworkBackend):
    """The network as a client sees it: no piece is waited for beyond the deadline of the calling thread."""

    def __init__(self) -> None:
        self._network = httpcore2.SyncBackend()
        self._of_thread = threading.local()
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def until(self, ends: float) -> Iterator[None]:
        """What this thread waits for within, ends by then (`time.monotonic()` seconds)."""
        self._of_thread.ends = ends
        try:
            yield
        finally:
            self._of_thread.ends = None

    def shut_down(self) -> None:
        """End every connection: who waits for one is woken, and the other side sees that it is closed."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.shut_down()

    def left(self, timeout: float | None) -> float | None:
        """Seconds to wait: `timeout`, or what is left to the calling thread. Raises `ReadTimeout` when nothing is."""
        ends = getattr(self._of_thread, "ends", None)
        if ends is None:
            return timeout
        left = float(ends) - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time of the call is over")
        return left if timeout is None else min(timeout, left)

    def opened(self, stream: httpcore2.NetworkStream) -> _Stream:
        found = _Stream(stream, self)
        with self._lock:
            self._streams.add(found)
        return found

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> _Stream:
        return self.opened(self._network.connect_tcp(host, port, self.left(timeout), local_address, socket_options))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadlines: Deadlines) -> None:
        self._stream, self._deadlines = stream, deadlines
        self._unsent = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # The other side may have answered and closed before it had read everything: then there is what it said.
        with contextlib.suppress(httpcore2.WriteError):
            self._send(timeout)
        return self._stream.read(max_bytes, self._deadlines.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send it with what is written next, before the answer is read: headers and a short body in one packet."""
        self._unsent += buffer
        if len(self._unsent) > MOST_UNSENT:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        unsent, self._unsent = self._unsent, b""
        if unsent:
            self._stream.write(unsent, self._deadlines.left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadlines.left(timeout))
        return self._deadlines.opened(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()

    def shut_down(self) -> None:
        found = self._stream.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it is closed already
            socket.socket.shutdown(found, socket.SHUT_RDWR)  # of a TLS socket too: no farewell is waited for


def use(deadlines: Deadlines, client: Any) -> None:
    """Have every connection of an `httpx2.Client` made through `deadlines`, those through a proxy included.

    The client has no public place for it beside its proxies from the environment.
    """
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = deadlines
