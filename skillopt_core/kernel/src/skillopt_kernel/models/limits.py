"""How many calls one endpoint has at once, for all that ask it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from skillopt_kernel.errors import CallTimeout, Cancelled

_LOOK_AROUND = 0.1
"""Seconds after which a waiting call looks whether the run was stopped."""


class EndpointLimit:
    """How many calls an endpoint has at once, and until when all of them must wait.

    `limit` `None` means no limit. An endpoint that says "wait" (`Retry-After`) pauses for every caller, not
    only for the one that was told. `answered`: whether any call of this run has had an answer from it. The
    adaptive limit has its place here.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self.answered = False
        self._running = 0
        self._paused_until = 0.0
        self._changed = threading.Condition()

    def pause(self, seconds: float) -> None:
        """Let no further call begin for `seconds`. A pause is never shortened."""
        with self._changed:
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    @contextmanager
    def slot(self, not_before: float, deadline: float | None, cancelled: threading.Event) -> Iterator[float]:
        """Wait for the pause, for `not_before` and for a free place; yields the seconds waited.

        `not_before` and `deadline` are in `time.monotonic()` seconds. Raises `CallTimeout` once the deadline has
        passed and `Cancelled` once the event is set.
        """
        began = time.monotonic()
        with self._changed:
            while True:
                now = time.monotonic()
                if cancelled.is_set():
                    raise Cancelled("the run is stopping")
                if deadline is not None and now >= deadline:
                    raise CallTimeout("the time of the call was over before the endpoint could be asked")
                pause = max(not_before, self._paused_until) - now
                if pause <= 0 and (self._limit is None or self._running < self._limit):
                    break
                self._changed.wait(min(pause, _LOOK_AROUND) if pause > 0 else _LOOK_AROUND)
            self._running += 1
        try:
            yield time.monotonic() - began
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify()
