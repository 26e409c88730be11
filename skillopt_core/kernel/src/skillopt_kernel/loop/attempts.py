"""One pool of attempts for the whole run: a queue in order of worth, and nothing asked twice.

The loop's thread asks and waits; jobs attempt, score and commit. An outcome that is stored is answered
from the store, one that is in flight is joined, and what nobody wants any more is not begun.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from skillopt_kernel.errors import StoppedEarly
from skillopt_kernel.records import Ask, Outcome

Key = tuple[str, str, int]
Settled = Callable[[Mapping[str, Outcome]], bool]
Ended = Callable[[Outcome | BaseException], None]


@attrs.frozen
class Purpose:
    """What outcomes are asked for: the stage its calls bear, the folder they are kept in, and how urgent.

    folder is relative to the run directory; a lower `rank` is begun first. epoch and step: where the cost of its
    calls belongs, `None` where it belongs to none.
    """

    stage: str
    folder: str
    rank: int = 0
    epoch: int | None = None
    step: int | None = None


@attrs.define(eq=False)
class _Group:
    """One call of `evaluate`: its jobs in the order asked, and what has arrived."""

    settled: Settled | None
    jobs: list[_Job] = attrs.field(factory=list)
    arrived: dict[str, Outcome] = attrs.field(factory=dict)
    last_arrived: int = -1

    def arrive(self, index: int, outcome: Outcome) -> None:
        self.arrived[outcome.task_id] = outcome
        self.last_arrived = max(self.last_arrived, index)


@attrs.define(eq=False)
class _Job:
    key: Key
    ask: Ask
    purpose: Purpose
    prefetched: bool = False
    queued: bool = False
    running: bool = False
    outcome: Outcome | None = None
    groups: list[tuple[_Group, int]] = attrs.field(factory=list)


@attrs.define(eq=False)
class AttemptPool:
    """Starts attempts, at most `capacity()` at a time.

    key       the identity of an ask: skill hash, task, sample
    find      an outcome from the store, or `None`
    start     has one ask attempted, scored and committed, and calls its last argument once, from any thread, with
              the outcome or with what must end the run; it waits for nothing and raises nothing
    expected  seconds that an ask is likely to take, for starting the longest first; 0 when unknown
    """

    _capacity: Callable[[], int]
    _key: Callable[[Ask], Key] = attrs.field(kw_only=True)
    _find: Callable[[Ask], Outcome | None] = attrs.field(kw_only=True)
    _start: Callable[[Ask, Purpose, Ended], None] = attrs.field(kw_only=True)
    _expected: Callable[[Ask], float] = attrs.field(kw_only=True, default=lambda _: 0.0)
    _changed: threading.Condition = attrs.field(init=False, factory=threading.Condition)
    _queue: list[tuple[int, float, int, _Job]] = attrs.field(init=False, factory=list)
    _jobs: dict[Key, _Job] = attrs.field(init=False, factory=dict)
    _numbers: Iterator[int] = attrs.field(init=False, factory=itertools.count)
    _running: int = attrs.field(init=False, default=0)
    _failure: BaseException | None = attrs.field(init=False, default=None)
    _stopping: bool = attrs.field(init=False, default=False)

    def prefetch(self, asks: Sequence[Ask], purpose: Purpose) -> None:
        """Start what is not stored yet and wait for nothing; `evaluate` joins it."""
        with self._changed:
            for ask in asks:
                job = self._job(ask, purpose)
                if job.outcome is None:
                    job.prefetched = True
                    self._enqueue(job, self._expected(ask))
        self._pump()

    def evaluate(
        self, asks: Sequence[Ask], purpose: Purpose, *, settled: Settled | None = None, in_order: bool = False
    ) -> Iterator[Outcome]:
        """Yield one outcome for each ask, in the order asked.

        `in_order` begins them in that order too; otherwise the longest expected is begun first. `settled` is
        asked at each arrival, with what has arrived by task id; once it says yes, nothing beyond the last
        arrival is begun. Closing the iterator drops what has not begun.
        """
        group = _Group(settled)
        with self._changed:
            for index, ask in enumerate(asks):
                job = self._job(ask, purpose)
                job.groups.append((group, index))
                group.jobs.append(job)
                if job.outcome is not None:
                    group.arrive(index, job.outcome)
            for job in group.jobs:
                if job.outcome is None:
                    self._enqueue(job, 0.0 if in_order else self._expected(job.ask))
            self._check_settled(group)
        self._pump()
        return self._results(group)

    def _results(self, group: _Group) -> Iterator[Outcome]:
        taken = 0
        try:
            for job in group.jobs:
                with self._changed:
                    while job.outcome is None:
                        if self._failure is not None:
                            raise self._failure
                        if not job.queued and not job.running:
                            if self._stopping:
                                raise StoppedEarly("the run was asked to stop; its state is saved.")
                            self._enqueue(job, 0.0)
                            self._pump()
                        self._changed.wait()
                    outcome = job.outcome
                    self._release(job, group)
                    taken += 1
                yield outcome
        finally:
            with self._changed:
                for job in group.jobs[taken:]:
                    self._release(job, group)

    def stop(self) -> None:
        """Begin nothing more. What is in flight is finished and committed."""
        with self._changed:
            self._stopping = True
            for *_, job in self._queue:
                job.queued = False
            self._queue.clear()
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until nothing is in flight."""
        with self._changed:
            while self._running:
                self._changed.wait()

    def _job(self, ask: Ask, purpose: Purpose) -> _Job:
        key = self._key(ask)
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job(key, ask, purpose, outcome=self._find(ask))
        return job

    def _enqueue(self, job: _Job, expected: float) -> None:
        if not job.queued and not job.running and not self._stopping:
            job.queued = True
            heapq.heappush(self._queue, (job.purpose.rank, -expected, next(self._numbers), job))

    def _pump(self) -> None:
        # What starting takes (an event, a look into the store) is done outside the lock where the caller holds none.
        while (job := self._next()) is not None:
            self._start(job.ask, job.purpose, partial(self._ended, job))

    def _next(self) -> _Job | None:
        """The job to start now, counted as running; `None` when there is none or no place for it."""
        with self._changed:
            while self._queue and self._running < self._capacity() and self._failure is None:
                *_, job = heapq.heappop(self._queue)
                if job.queued:
                    job.queued, job.running = False, True
                    self._running += 1
                    return job
        return None

    def _ended(self, job: _Job, ended: Outcome | BaseException) -> None:
        with self._changed:
            self._running -= 1
            job.running = False
            if isinstance(ended, BaseException):  # carried to the loop's thread, which raises it there
                self._failure = self._failure or ended
            else:
                job.outcome, job.prefetched = ended, False
                for group, index in job.groups:
                    group.arrive(index, ended)
                    self._check_settled(group)
                self._forget_unwanted(job)
            self._changed.notify_all()
        self._pump()

    def _check_settled(self, group: _Group) -> None:
        # A decision falls at the shortest prefix that settles it, so tasks before the last arrival are still
        # begun: a run that was killed and resumed has gaps there, an unbroken one has them in flight.
        if group.settled is None or not group.arrived or not group.settled(group.arrived):
            return
        for job in group.jobs[group.last_arrived + 1 :]:
            if job.queued and len(job.groups) <= 1 and not job.prefetched:
                job.queued = False

    def _release(self, job: _Job, group: _Group) -> None:
        job.groups = [entry for entry in job.groups if entry[0] is not group]
        self._forget_unwanted(job)

    def _forget_unwanted(self, job: _Job) -> None:
        # The store answers from now on; a missing outcome is asked anew when somebody asks again.
        if not job.groups and not job.prefetched and not job.running:
            job.queued = False
            self._jobs.pop(job.key, None)
