"""One worker process as the run's process sees it: started, given a job, served its model calls, ended."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.execution import AttemptJob, AttemptResult, ModelCalls
from skillopt_kernel.records import Missing

from skillopt_executor_processes.messages import LOST, NotSendable, Pipe
from skillopt_executor_processes.service import Service
from skillopt_executor_processes.worker import START

GRACE = 2.0
"""Seconds that an attempt may take to end by itself after its time is over or the run is given up."""

OUT_OF_TIME = "the attempt ran out of time outside a model call"
"""Why a worker was lost whose attempt is to be scored as it stands."""


@define(eq=False)
class WorkerProcess:
    """Used by one thread, but for what is below that thread's methods.

    ready      it has made its environment; performed: jobs that it has been given
    usable     false once it has been ended from here
    """

    _stopping: threading.Event
    _logger: logging.Logger
    _process: subprocess.Popen[bytes]
    _pipe: Pipe
    ready: bool = field(init=False, default=False)
    performed: int = field(init=False, default=0)
    usable: bool = field(init=False, default=True)
    _ended_for: str = field(init=False, default="")
    _limit: float | None = field(init=False, default=None)
    _told_to_stop: float | None = field(init=False, default=None)
    _busy: bool = field(init=False, default=False)
    _said: deque[str] = field(init=False, factory=lambda: deque(maxlen=20))
    _listener: threading.Thread = field(init=False)
    _lock: Any = field(init=False, factory=threading.RLock)

    @classmethod
    def start(
        cls, equipment: bytes, variables: Mapping[str, str], stopping: threading.Event, logger: logging.Logger
    ) -> WorkerProcess:
        """Start a fresh interpreter in a process group of its own, so that Ctrl-C reaches the run's process only.

        equipment  an `Equipment`, pickled. Nothing is told by arguments or variables, which others can read.
        """
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(variables),
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert process.stdin is not None and process.stdout is not None
        made = cls(stopping, logger, process, Pipe(process.stdout, process.stdin))  # type: ignore[arg-type]
        made._listener = threading.Thread(target=made._listen, daemon=True)
        made._listener.start()
        with contextlib.suppress(*LOST):  # `perform` will find that it has ended
            pickle.dump(sys.path, process.stdin)
            made._pipe.send_packed("equipment", equipment)
        return made

    def _listen(self) -> None:
        """Keep the last lines that the worker prints, and log them."""
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError), self._process.stderr as lines:
            for line in lines:
                text = line.decode("utf-8", "replace").rstrip()
                self._said.append(text)
                self._logger.info("worker process %d: %s", self._process.pid, text)

    # In the thread that uses it -------------------------------------------------------------------------------

    def perform(self, job: AttemptJob, calls: ModelCalls) -> AttemptResult:
        """Have the worker perform the job, and serve its calls meanwhile."""
        service: Service | None = None
        self.performed += 1
        self._busy = True
        try:
            if not self.ready:
                word, content = self._pipe.receive()
                if word == "unfit":
                    self.kill("unfit")
                    return AttemptResult(failure=pickle.loads(content))
                self.ready = True
            service = Service(job, calls, self._stopping)
            self._watch_until(service.ends())
            self._pipe.send("job", job)
            return self._serve(service)
        except NotSendable as error:
            text = f"the task {job.task.id!r} cannot be sent to a worker process: {error}. A task holds JSON values."
            return AttemptResult(failure=SkillOptError(text))
        except LOST:
            return self._lost(job, service)
        finally:
            self._watch_until(None)
            self._busy = False

    def _serve(self, service: Service) -> AttemptResult:
        while True:
            word, content = self._pipe.receive()
            if word == "call":
                self._watch_until(None)  # a call has its own deadline
                reply = service.call(content)
                self._watch_until(service.ends())
                self._pipe.send_packed("reply", reply)
                continue
            try:
                told: Any = pickle.loads(content)
            except Exception as error:
                self.kill("unreadable")  # what else it may have sent belongs to nobody
                text = f"the outcome of task {service.job.task.id!r} cannot be read from its worker process: {error}."
                return AttemptResult(failure=SkillOptError(text))
            if word == "attempted":
                service.attempt = told
                self._watch_until(service.ends())
            else:
                result: AttemptResult = told
                return result if result.attempt or result.failure else evolve(result, attempt=service.attempt)

    def _watch_until(self, moment: float | None) -> None:
        with self._lock:
            self._limit = None if moment is None else moment + GRACE

    def _lost(self, job: AttemptJob, service: Service | None) -> AttemptResult:
        """What becomes of the job of a worker that has ended."""
        self.kill("")
        attempt = job.attempt if service is None else service.attempt
        if self._stopping.is_set():
            return AttemptResult(attempt=attempt, missing=Missing("cancelled", "the run is stopping"))
        if self._ended_for == "time" and service is not None:
            if attempt is not None:
                sentence = f"scoring did not end within env.attempt_timeout ({job.attempt_timeout:g} s)"
                return AttemptResult(attempt=attempt, missing=Missing("environment", sentence))
            return AttemptResult(attempt=service.out_of_time(), lost=OUT_OF_TIME)
        self._listener.join(timeout=GRACE)  # its last line may still be on its way
        code = self._process.returncode
        how = f"ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        last = f"; it said last: {self._said[-1]}" if self._said else ""
        return AttemptResult(attempt=attempt, lost=f"worker process {self._process.pid} {how}{last}")

    # From other threads ---------------------------------------------------------------------------------------

    def watch(self) -> None:
        """End the worker when its attempt hangs: past its time, or past the end of a run that was given up."""
        now = time.monotonic()
        with self._lock:
            if self._limit is not None and now > self._limit:
                self.kill("time")
        if not self._busy or not self._stopping.is_set():
            return
        if self._told_to_stop is None:
            self._told_to_stop = now
            with contextlib.suppress(*LOST):
                self._pipe.send("stop")
        elif now > self._told_to_stop + GRACE:
            self.kill("stop")

    def kill(self, ended_for: str) -> None:
        """End the process and all that it has started, at once."""
        with self._lock:
            if self.usable:
                self.usable, self._ended_for = False, ended_for
                end_group(self._process)

    def is_alive(self) -> bool:
        """False once it has ended, by itself or not."""
        return self.usable and is_running(self._process)

    def tell_to_end(self) -> None:
        """After the job that it is at."""
        with contextlib.suppress(*LOST):
            self._pipe.send("end")

    def dismiss(self, until: float) -> None:
        """Let a worker that was told to end do so until then (`time.monotonic()` seconds); after that, end it."""
        while self.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        self.kill("end")
        self._pipe.close()


def is_running(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has not ended yet. Where the system can tell without reaping it, its number stays its own."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll() is None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all of its group, and reap it; the group first, while the process still holds its number."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
