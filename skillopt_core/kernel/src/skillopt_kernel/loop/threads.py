"""The executor `threads`: attempts on a fixed number of daemon threads of the run's own process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest

if TYPE_CHECKING:
    from skillopt_kernel.execution import AttemptJob, AttemptResult, Done, ModelCalls

plugin = Manifest(
    kind="executor",
    name="threads",
    api=PLUGIN_API,
    summary="attempts run on threads of the run's own process",
    factory="skillopt_kernel.loop.threads:make_executor",
    section="execution",
)


class ThreadExecutor:
    """Performs jobs on `capacity` threads, one started with each of the first jobs.

    The threads are daemons: an environment that hangs for good does not keep the process alive after the run.
    `perform` must not raise.
    """

    def __init__(self, capacity: int, perform: Callable[[AttemptJob, ModelCalls], AttemptResult]) -> None:
        self.capacity = capacity
        self._perform = perform
        self._jobs: queue.SimpleQueue[tuple[AttemptJob, ModelCalls, Done] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def submit(self, job: AttemptJob, calls: ModelCalls, done: Done) -> None:
        """Perform `job` on some thread and give its result to `done` there."""
        with self._lock:
            if len(self._threads) < self.capacity:
                name = f"skillopt-worker-{len(self._threads) + 1}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        self._jobs.put((job, calls, done))

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, calls, done = item
            done(self._perform(job, calls))

    def close(self) -> None:
        """Let every thread end after the job it is at."""
        for _ in self._threads:
            self._jobs.put(None)


def make_executor(settings: Any, context: Any) -> ThreadExecutor:
    """The factory: as many threads as `env.workers` says, on the run's own environment."""
    from skillopt_kernel.loop.worker import Workplace, perform

    place: Workplace = context.common
    run = partial(perform, environment=place.environment, stopping=place.stopping, redact=place.redact)
    return ThreadExecutor(place.common.workers, lambda job, calls: run(job, calls=calls))
