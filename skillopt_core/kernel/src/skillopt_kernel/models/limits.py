"""How many calls one endpoint has at once, for all that ask it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from skillopt_kernel.errors import CallTimeout, Cancelled

_LOOK_AROUND = 0.1
"""Seconds after which a waiting call looks whether the run was stopped."""


_LESS = 0.7
"""What is left of the limit when the endpoint is overloaded."""

_CAREFUL = 0.1
"""How much slower the limit rises over the number that was too many the last time."""


class EndpointLimit:
    """How many calls an endpoint has at once, and until when all of them must wait.

    most      the limit at first, and the most that it ever is; `None`: as many as there are callers
    answered  whether any call of this run has had an answer from the endpoint

    The limit adapts as the window of TCP does (additive increase, multiplicative decrease: Chiu and Jain, Analysis of
    the Increase and Decrease Algorithms for Congestion Avoidance, 1989). Of an overload it falls to 0.7 of itself, once
    for all calls that were under way together; each served call raises it by 1 / limit, so by 1 for every round of
    calls, between 1 and `most`. At the number that was too many the last time it rises ten times slower, and as fast
    as before beyond it. An endpoint that says "wait" (`Retry-After`) pauses for every caller, not only for the one
    that was told.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = math.inf if most is None else float(most)
        self._limit = self._most
        self._too_many = math.inf
        self._fell_at = 0.0
        self.answered = False
        self._running = 0
        self._paused_until = 0.0
        self._changed = threading.Condition()

    @property
    def at_once(self) -> int | None:
        """The limit now; `None`: there is none."""
        return None if self._limit == math.inf else int(self._limit)

    def served(self) -> None:
        """A call was answered: there may be place for more."""
        with self._changed:
            self.answered = True
            near = self._too_many - 1 <= self._limit < self._too_many
            self._limit = min(self._most, self._limit + (_CAREFUL if near else 1.0) / self._limit)
            self._changed.notify()

    def overloaded(self, asked_at: float) -> None:
        """A call that began at `asked_at` (`time.monotonic()`) was one too many; 0.0: it never began.

        Those that were under way when the limit fell tell nothing of the limit that there is now.
        """
        with self._changed:
            if asked_at > self._fell_at:
                self._too_many = math.floor(self._limit) if self._limit < math.inf else self._running + 1
                self._limit = max(1.0, _LESS * self._too_many)
                self._fell_at = time.monotonic()

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
                if pause <= 0 and self._running + 1 <= self._limit:
                    break
                self._changed.wait(min(pause, _LOOK_AROUND) if pause > 0 else _LOOK_AROUND)
            self._running += 1
        try:
            yield time.monotonic() - began
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify()
