"""The executor `threads`: attempts on a fixed number of daemon threads of the run's own process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest

plugin = Manifest(
    kind="executor",
    name="threads",
    api=PLUGIN_API,
    summary="attempts run on threads of the run's own process",
    factory="skillopt_kernel.loop.threads:make_executor",
    section="execution",
)


class ThreadExecutor:
    """Runs jobs on `capacity` threads, one started with each of the first jobs.

    The threads are daemons: an environment that hangs for good does not keep the process alive after the run.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def capacity(self) -> int:
        return self._capacity

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run `job` on some thread and give what it returns to `done` there. `job` must not raise."""
        with self._lock:
            if len(self._threads) < self._capacity:
                name = f"skillopt-worker-{len(self._threads) + 1}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        self._jobs.put((job, done))

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            done(job())

    def close(self) -> None:
        """Let every thread end after the job it is at."""
        for _ in self._threads:
            self._jobs.put(None)


def make_executor(settings: Any, context: Any) -> ThreadExecutor:
    """The factory: as many threads as `env.workers` says."""
    return ThreadExecutor(context.common.workers)
