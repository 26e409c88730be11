"""The worker process: makes its own environment, performs one job after the other, and asks the run for model calls."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import signal
import threading
import time
from functools import partial
from typing import Any, BinaryIO, NoReturn

from attrs import define, evolve, field, frozen
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.execution import AttemptJob, AttemptResult, ModelCalls
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.worker import perform
from skillopt_kernel.plugins.discovery import make_driver

from skillopt_executor_processes.messages import LOST, NotSendable, Pipe, portable

START = """\
import os, pickle, sys
incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.path[:] = pickle.load(incoming)
from skillopt_executor_processes.worker import work
work(incoming, outgoing)
"""
"""What the interpreter of a worker is started with. The pipes move away from the descriptors 0 and 1, so that what an
environment reads finds nothing, and what it prints goes where errors go; then modules are looked for as in the run."""


@frozen
class Equipment:
    """What a worker makes its environment of."""

    name: str
    settings: Any
    common: Any
    seed: int


def work(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """The life of a worker, until it is told to end or the run's process is gone."""
    pipe = Pipe(incoming, outgoing)
    worker = Worker(pipe)
    _, content = pipe.receive()
    threading.Thread(target=worker.listen, daemon=True).start()
    try:
        equipment: Equipment = pickle.loads(content)
        context = DriverContext(logging.getLogger("skillopt"), equipment.seed, common=equipment.common)
        environment = make_driver("env", equipment.name, equipment.settings, context)
    except (Exception, SystemExit) as error:
        pipe.send("unfit", portable(error))
        return
    pipe.send("ready")
    while (job := worker.jobs.get()) is not None:
        worker.perform(job, environment)


@define(eq=False)
class Worker:
    """Between the pipe and the environment."""

    _pipe: Pipe
    jobs: queue.SimpleQueue[bytes | None] = field(init=False, factory=queue.SimpleQueue)
    _replies: queue.SimpleQueue[bytes] = field(init=False, factory=queue.SimpleQueue)
    _stopping: threading.Event = field(init=False, factory=threading.Event)
    _calling: Any = field(init=False, factory=threading.Lock)

    def listen(self) -> None:
        """Sort what comes in. When the run's process is gone, this one goes too, and whatever it has started."""
        while True:
            try:
                word, content = self._pipe.receive()
            except LOST:
                end_own_group()
            if word == "end":
                self.jobs.put(None)
                return
            if word == "stop":
                self._stopping.set()
            else:
                (self.jobs if word == "job" else self._replies).put(content)

    def perform(self, content: bytes, environment: Any) -> None:
        """One job, and its result sent."""
        try:
            job: AttemptJob = pickle.loads(content)
        except Exception as error:
            text = f"a task cannot be read in a worker process ({error}). A task holds JSON values."
            self._pipe.send("result", AttemptResult(failure=SkillOptError(text)))
            return
        calls = ModelCalls(*(partial(self._call, role) for role in ("target", "judge", "agent")))
        sent = [job.attempt] if job.attempt is not None else []

        def attempted(attempt: Any) -> None:
            self._send("attempted", attempt, job)
            sent.append(attempt)

        result = perform(job, environment, calls, self._stopping, attempted)
        if result.failure is not None:
            result = AttemptResult(failure=portable(result.failure))
        if sent and result.attempt is sent[0]:  # it is there already
            result = evolve(result, attempt=None)
        try:
            self._send("result", result, job)
        except SkillOptError as error:
            self._pipe.send("result", AttemptResult(failure=error))

    def _send(self, word: str, content: Any, job: AttemptJob) -> None:
        try:
            self._pipe.send(word, content)
        except NotSendable as error:
            raise SkillOptError(
                f"the outcome of task {job.task.id!r} cannot be sent from its worker process: {error}. The environment "
                f"must give texts for `output` and `feedback`, finite numbers for named scores, and JSON values for "
                f"`state`."
            ) from error
        except OSError:
            end_own_group()

    def _call(self, role: str, request: Any) -> Any:
        """Have the run's process make a call, and wait for what came of it.

        The seconds that are left are sent in place of the deadline, which only this process's clock can tell.
        """
        left = None if request.deadline is None else request.deadline - time.monotonic()
        with self._calling:
            self._pipe.send("call", (role, evolve(request, deadline=None), left))
            succeeded, answer = pickle.loads(self._replies.get())
        if not succeeded:
            raise answer
        return answer


def end_own_group() -> NoReturn:
    """End this process and what it has started, at once: nobody is there any more who would wait for it."""
    if os.name == "posix" and os.getpgid(0) == os.getpid():
        with contextlib.suppress(OSError):
            os.killpg(0, signal.SIGKILL)
    os._exit(1)
