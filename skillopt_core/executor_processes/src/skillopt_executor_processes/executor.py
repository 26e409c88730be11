"""The executor: a thread of the run's process for each worker process, which feeds it and serves its model calls."""

from __future__ import annotations

import os
import threading
import time

from attrs import evolve
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.execution import AttemptJob, AttemptResult, Done, ModelCalls
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.threads import ThreadExecutor
from skillopt_kernel.loop.worker import Workplace
from skillopt_kernel.plugins.discovery import load_manifest

from skillopt_executor_processes.messages import NotSendable, packed
from skillopt_executor_processes.process import GRACE, OUT_OF_TIME, WorkerProcess
from skillopt_executor_processes.settings import ProcessesSettings
from skillopt_executor_processes.variables import variables_for_workers
from skillopt_executor_processes.worker import Equipment

LOOK_AROUND = 0.1
"""Seconds between two looks at the workers."""


class ProcessExecutor:
    """Performs jobs in `capacity` worker processes, each started with its thread's first job."""

    def __init__(self, settings: ProcessesSettings, context: DriverContext) -> None:
        place: Workplace = context.common
        self._settings, self._context, self._stopping = settings, context, place.stopping
        self._equipment = equipment_of(place, context.seed)
        needs = load_manifest("env", place.name).needs
        self._variables = variables_for_workers(os.environ, (*needs, *settings.worker_variables))
        self._threads = ThreadExecutor(place.common.workers, self._perform)
        self._own = threading.local()
        self._workers: set[WorkerProcess] = set()
        self._one_was_ready = self._watching = False
        self._closed = threading.Event()
        self._lock = threading.Lock()

    @property
    def capacity(self) -> int:
        return self._threads.capacity

    def submit(self, job: AttemptJob, calls: ModelCalls, done: Done) -> None:
        """Perform `job` in some worker and give its result to `done`, in that worker's thread."""
        self._threads.submit(job, calls, done)

    def _perform(self, job: AttemptJob, calls: ModelCalls) -> AttemptResult:
        """In a worker's thread: one job in its worker. An attempt that had to be ended is scored by the next one."""
        try:
            result = self._perform_once(job, calls)
            if result.lost == OUT_OF_TIME:
                result = self._perform_once(evolve(job, attempt=result.attempt), calls)
            return result
        except Exception as error:  # a defect, raised in the loop's thread: this one must serve the next job
            return AttemptResult(failure=error)

    def _perform_once(self, job: AttemptJob, calls: ModelCalls) -> AttemptResult:
        try:
            worker = self._worker()
        except OSError as error:
            text = f"a worker process cannot be started ({error}). Set `env.workers` lower, or free memory."
            return AttemptResult(failure=SkillOptError(text))
        result = worker.perform(job, calls)
        self._one_was_ready = self._one_was_ready or worker.ready
        if result.lost and not self._one_was_ready:  # they would all end so
            text = f"no worker process can be started: the first {result.lost}"
            return AttemptResult(failure=SkillOptError(text))
        return result

    def _worker(self) -> WorkerProcess:
        """The worker of this thread; a new one for the first job, for one that has ended, and for a worn one."""
        worker: WorkerProcess | None = getattr(self._own, "worker", None)
        worn = worker is not None and 0 < self._settings.worker_attempts <= worker.performed
        if worker is not None and (worn or not worker.is_alive()):
            worker.tell_to_end()
            worker.dismiss(time.monotonic() + GRACE)
            with self._lock:
                self._workers.discard(worker)
            worker = None
        if worker is None:
            worker = WorkerProcess.start(self._equipment, self._variables, self._stopping, self._context.logger)
            self._own.worker = worker
            with self._lock:
                if not self._watching:
                    threading.Thread(target=self._watch, name="skillopt-watch", daemon=True).start()
                self._watching = True
                self._workers.add(worker)
        return worker

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_AROUND):
            with self._lock:
                workers = list(self._workers)
            for worker in workers:
                worker.watch()

    def close(self) -> None:
        """End every worker, also one that is at work, within two seconds."""
        self._closed.set()
        self._threads.close()
        until = time.monotonic() + GRACE
        with self._lock:
            workers = list(self._workers)
        for worker in workers:
            worker.tell_to_end()
        for worker in workers:
            worker.dismiss(until)


def equipment_of(place: Workplace, seed: int) -> bytes:
    """What a worker makes its environment of, pickled. Raises `SkillOptError` when it cannot be."""
    try:
        return packed(Equipment(place.name, place.settings, place.common, seed))
    except NotSendable as error:
        raise SkillOptError(
            f"the settings of the environment {place.name!r} cannot be sent to a worker process: {error}. Settings "
            f"hold plain values; write `execution.executor: threads` if the environment can run on threads."
        ) from error


def make_executor(settings: ProcessesSettings, context: DriverContext) -> ProcessExecutor:
    """The factory. `context.common` is a `Workplace`."""
    return ProcessExecutor(settings, context)
