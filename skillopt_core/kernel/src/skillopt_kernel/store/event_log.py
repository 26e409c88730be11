"""The events of a run: emitted from any thread, written and delivered in order by one observer thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.events import Event
from skillopt_kernel.store.files import Journal, json_line, last_lines, now
from skillopt_kernel.store.redaction import Redactor

EVENTS = "events.jsonl"

GATHER = 0.01
"""Seconds for which events are gathered before they are written: each write takes all other threads a turn."""


class EventLog:
    """Writes `events.jsonl`, and hands each event to `deliver` once it is written.

    deliver is called in the observer thread only, so that a slow observer holds nothing up. What it raises, or
    what writing raises, is kept (the first time) and raised by `flush` or `close` in the caller's thread; later
    events are still delivered. That the file cannot be written is raised by `emit`, too. Texts are written without
    credentials and without what looks like one.
    """

    def __init__(
        self,
        run_folder: Path,
        run_name: str,
        deliver: Callable[[Event], None] = lambda _: None,
        redactor: Redactor | None = None,
    ) -> None:
        self._run, self._deliver = run_name, deliver
        # Most texts of events are names that come again and again.
        self._clean = lru_cache(maxsize=4096)((redactor or Redactor()).diagnostics)
        self._journal = Journal(run_folder / EVENTS)
        self._seq = max((row.get("seq", 0) for row in last_lines(self._journal.path, 20)), default=0)
        self._queue: SimpleQueue[Event | threading.Event | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        # A daemon: a second Ctrl-C must end the process though an observer hangs.
        self._thread = threading.Thread(target=self._observe, name="skillopt-observer", daemon=True)
        self._thread.start()

    def emit(
        self, name: str, epoch: int | None = None, step: int | None = None, stage: str | None = None, **data: Any
    ) -> None:
        """Queue one event. `data`: ids, numbers, relative paths and short texts. After `close` nothing is taken."""
        if isinstance(self._failure, RunDirectoryError):
            raise self._failure
        plain = {key: self._plain(value) for key, value in data.items()}
        with self._lock:
            self._seq += 1
            self._queue.put(Event(name, self._seq, now(), self._run, epoch, step, stage, plain))

    def flush(self) -> None:
        """Wait until all that was emitted is written and delivered; raise the first failure there was."""
        if threading.current_thread() is not self._thread:
            reached = threading.Event()
            self._queue.put(reached)
            while self._thread.is_alive() and not reached.wait(0.1):
                pass
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Write and deliver what is queued, and end the thread. Raises as `flush` does."""
        self._queue.put(None)
        self._thread.join()
        self._journal.close()
        self.flush()

    def _observe(self) -> None:
        items: list[Event | threading.Event | None] = []
        while None not in items:
            time.sleep(GATHER)
            items = [self._queue.get() for _ in range(max(1, self._queue.qsize()))]
            lines = b"".join(json_line(item.as_json()) for item in items if isinstance(item, Event))
            self._trying(partial(self._journal.append, lines))
            for item in items:
                if isinstance(item, Event):
                    self._trying(partial(self._deliver, item))
                elif item is not None:
                    item.set()

    def _trying(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # carried to the thread that flushes
            self._failure = self._failure or error

    def _plain(self, value: Any) -> Any:
        """As JSON values: texts redacted, numbers that JSON has not as null, other objects as their text."""
        if isinstance(value, str):
            return self._clean(value)
        if value is None or isinstance(value, int | float):
            return value if not isinstance(value, float) or math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {self._clean(str(key)): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._plain(item) for item in value]
        return self._clean(value.as_posix() if isinstance(value, Path) else str(value))
