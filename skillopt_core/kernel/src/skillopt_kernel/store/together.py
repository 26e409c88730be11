"""Writes that many threads make at once, joined: who comes first writes for all that wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Hands what threads put to `write`, in lists: what came while it was at work is in its next one.

    A write of its own for each would let all but one thread wait for every system call of every other.
    """

    def __init__(self, write: Callable[[list[T]], object]) -> None:
        self._write, self._lock = write, threading.Lock()
        self._waiting: deque[tuple[T, Future[None]]] = deque()

    def put(self, item: T) -> None:
        """Return once `write` has written the item. Raises what it raised, for each item of its list."""
        mine = Future[None]()
        self._waiting.append((item, mine))
        with self._lock:
            if not mine.done():
                batch, error = [self._waiting.popleft() for _ in range(len(self._waiting))], None
                try:
                    self._write([each for each, _ in batch])
                except BaseException as raised:  # raised below, in each thread that waits for it
                    error = raised
                for _, written in batch:
                    written.set_exception(error)
        mine.result()
