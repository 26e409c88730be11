"""One pool of attempts for the whole run: a queue in order of worth, and nothing asked twice.

The loop's thread asks and waits; jobs attempt, score and commit. An outcome that is stored is answered
from the store, one that is in flight is joined, and what nobody wants any more is not begun.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from skillopt_kernel.errors import BudgetSpent, Pending, StoppedEarly
from skillopt_kernel.records import Ask, Outcome

Key = tuple[str, str, int]
Settled = Callable[[Mapping[str, Outcome]], bool]
Ended = Callable[[Outcome | BaseException], None]


LASTING = ("rejected", "worker")
"""Reasons for which an outcome is missing again if it is asked again."""

BACKGROUND = 3
"""The rank of what will be needed at the end only: it gets at most a quarter of the places, so that what the loop
waits for finds the others free."""


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


def is_passing(outcome: Outcome) -> bool:
    """Whether an outcome is missing for a reason that may pass."""
    return outcome.missing is not None and outcome.missing.reason not in LASTING


@attrs.define(eq=False)
class _Group:
    """One call of `evaluate`: its jobs in the order asked, and what has arrived or is expected, by task id.

    wanted  how many of the jobs are to be begun
    """

    settled: Settled | None
    in_order: bool
    known: dict[str, Outcome]
    jobs: list[_Job] = attrs.field(factory=list)
    wanted: int = 0
    ended: int = 0

    def waits(self) -> bool:
        """Whether something of it waits or is under way. Each job is looked at once, since what has ended stays so."""
        while self.ended < len(self.jobs) and not (self.jobs[self.ended].queued or self.jobs[self.ended].running):
            self.ended += 1
        return self.ended < len(self.jobs)

    def arrive(self, outcome: Outcome) -> bool:
        """Take an outcome in. True if it was not known so, which can change what is wanted."""
        before, self.known[outcome.task_id] = self.known.get(outcome.task_id), outcome
        now, then = ((one.hard, one.soft) if one and one.scored else None for one in (outcome, before))
        return now is None or now != then

    def plan(self) -> None:
        """Work out `wanted`: the shortest prefix that settles it, if each comes out as expected; else all.

        What has arrived beyond that prefix does not count, since the decision falls at a prefix. A task of which
        nothing is known counts as a possible win.
        """
        self.wanted = len(self.jobs)
        if self.settled is not None and self._enough(self.wanted):
            self.wanted = bisect_left(range(self.wanted), True, key=self._enough)

    def _enough(self, count: int) -> bool:
        ids = (job.ask.task.id for job in self.jobs[:count])
        return self.settled is not None and self.settled({id_: self.known[id_] for id_ in ids if id_ in self.known})


@attrs.define(eq=False)
class _Job:
    key: Key
    ask: Ask
    purpose: Purpose
    prefetched: bool = False
    queued: bool = False
    running: bool = False
    outcome: Outcome | None = None
    pending: Pending | None = None
    retries: int = 0
    groups: list[_Group] = attrs.field(factory=list)


@attrs.define(eq=False)
class AttemptPool:
    """Starts attempts, at most `capacity()` at a time.

    key       the identity of an ask: skill hash, task, sample
    find      an outcome from the store, or `None`
    start     has one ask attempted, scored and committed, and calls its last argument once, from any thread, with
              the outcome or with what must end the run; it waits for nothing and raises nothing
    expected  seconds that an ask is likely to take, for starting the longest first; 0 when unknown
    missing_retries   how often an outcome that is missing is asked again
    """

    _capacity: Callable[[], int]
    _key: Callable[[Ask], Key] = attrs.field(kw_only=True)
    _find: Callable[[Ask], Outcome | None] = attrs.field(kw_only=True)
    _start: Callable[[Ask, Purpose, Ended], None] = attrs.field(kw_only=True)
    _expected: Callable[[Ask], float] = attrs.field(kw_only=True, default=lambda _: 0.0)
    _missing_retries: int = attrs.field(kw_only=True, default=0)
    _changed: threading.Condition = attrs.field(init=False, factory=threading.Condition)
    _queue: list[tuple[int, float, int, _Job]] = attrs.field(init=False, factory=list)
    _jobs: dict[Key, _Job] = attrs.field(init=False, factory=dict)
    _numbers: Iterator[int] = attrs.field(init=False, factory=itertools.count)
    _running: int = attrs.field(init=False, default=0)
    _awaited: _Job | None = attrs.field(init=False, default=None)
    _behind: int = attrs.field(init=False, default=0)
    _failure: BaseException | None = attrs.field(init=False, default=None)
    _stopping: bool = attrs.field(init=False, default=False)
    _scored: bool = attrs.field(init=False, default=False)

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
        self,
        asks: Sequence[Ask],
        purpose: Purpose,
        *,
        settled: Settled | None = None,
        expected: Mapping[str, Outcome] | None = None,
        in_order: bool = False,
    ) -> Iterator[Outcome]:
        """Yield one outcome for each ask, in the order asked.

        `in_order` begins them in that order too; otherwise the longest expected is begun first. `settled` is asked
        with outcomes by task id, whether a prefix with these outcomes is enough; more outcomes must not turn its yes
        into a no. No more is begun than such a prefix, each task of it as it arrived, or as `expected` as long as it
        has not: so nothing that is needed only if the expectation holds, and the rest once one falls.
        Closing the iterator drops what has not begun. Missing outcomes are asked again once all others have ended.
        """
        group = _Group(settled, in_order, dict(expected or {}))
        with self._changed:
            for ask in asks:
                job = self._job(ask, purpose)
                job.groups.append(group)
                group.jobs.append(job)
                if job.outcome is not None:
                    group.arrive(job.outcome)
            self._begin(group)
        self._pump()
        return self._results(group)

    def _results(self, group: _Group) -> Iterator[Outcome]:
        taken = 0
        try:
            for job in group.jobs:
                with self._changed:
                    outcome = self._outcome(job)
                    while self._may_be_asked_again(job) and self._ask_missing_again(group):
                        outcome = self._outcome(job)
                    self._release(job, group)
                    taken += 1
                yield outcome
        finally:
            with self._changed:
                for job in group.jobs[taken:]:
                    self._release(job, group)

    def _outcome(self, job: _Job) -> Outcome:
        """Wait for the outcome of a job, which is queued if nobody has done so; one that is pending ends the run."""
        while job.outcome is None:
            if job.pending is not None:
                self.drain(whole=True)
                raise self._failure or job.pending
            if not job.queued and not job.running:
                self._raise_if_over()
                self._enqueue(job, 0.0)
                self._pump()
            self._wait(job)
        return job.outcome

    def _ask_missing_again(self, group: _Group) -> bool:
        """Once all of the group has ended, queue what is missing of it.

        Not while nothing in the whole run has a score: then it is not the single attempt that fails.
        """
        while group.waits():
            self._wait(group.jobs[group.ended])
        self._raise_if_over()
        if not self._scored:
            return False
        group.ended = 0
        for job in filter(self._may_be_asked_again, group.jobs):
            job.outcome, job.retries = None, job.retries + 1
            self._enqueue(job, 0.0)
        self._pump()
        return True

    def _may_be_asked_again(self, job: _Job) -> bool:
        return job.outcome is not None and is_passing(job.outcome) and job.retries < self._missing_retries

    def _wait(self, job: _Job) -> None:
        if self._failure is not None:
            raise self._failure
        self._awaited = job
        self._changed.wait()

    def _raise_if_over(self) -> None:
        if self._stopping:
            raise StoppedEarly("the run was asked to stop; its state is saved.")

    def stop(self) -> None:
        """Begin nothing more. What is in flight is finished and committed."""
        with self._changed:
            self._stopping = True
            self._drop_queue()
            self._changed.notify_all()

    def clear(self) -> None:
        """Begin nothing that was asked for, wait for what is in flight, and forget that the budget was spent."""
        with self._changed:
            self._drop_queue()
            self.drain()
            if self._failure is not None and not isinstance(self._failure, BudgetSpent):
                raise self._failure
            self._failure = None
            self._jobs.clear()

    def _drop_queue(self) -> None:
        for *_, job in self._queue:
            job.queued = False
        self._queue.clear()

    def drain(self, *, whole: bool = False) -> None:
        """Wait until nothing is in flight; `whole`: nor anything queued that can still be begun."""
        with self._changed:
            while self._running or (whole and self._failure is None and any(job.queued for *_, job in self._queue)):
                self._changed.wait()

    def _job(self, ask: Ask, purpose: Purpose) -> _Job:
        key = self._key(ask)
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job(key, ask, purpose, outcome=self._find(ask))
            self._scored = self._scored or job.outcome is not None
        elif job.queued and purpose.rank < job.purpose.rank:  # fetched ahead, and waited for now
            job.purpose, job.queued = attrs.evolve(job.purpose, rank=purpose.rank), False
        return job

    def _enqueue(self, job: _Job, expected: float) -> None:
        if not job.queued and not job.running and not self._stopping and job.pending is None:
            job.queued = True
            heapq.heappush(self._queue, (job.purpose.rank, -expected, next(self._numbers), job))

    def _pump(self) -> None:
        # What starting takes (an event, a look into the store) is done outside the lock where the caller holds none.
        while (job := self._next()) is not None:
            self._start(job.ask, job.purpose, partial(self._ended, job))

    def _next(self) -> _Job | None:
        """The job to start now, counted as running; `None` when there is none or no place for it."""
        with self._changed:
            while self._queue and self._running < (capacity := self._capacity()) and self._failure is None:
                rank, *_, job = self._queue[0]
                if job.queued and rank >= BACKGROUND and 4 * self._behind >= capacity:
                    return None
                heapq.heappop(self._queue)
                if job.queued:
                    job.queued, job.running = False, True
                    self._running += 1
                    self._behind += rank >= BACKGROUND
                    return job
        return None

    def _ended(self, job: _Job, ended: Outcome | BaseException) -> None:
        with self._changed:
            self._running -= 1
            self._behind -= job.purpose.rank >= BACKGROUND
            job.running = False
            if isinstance(ended, Pending):
                job.pending = ended
            elif isinstance(ended, BaseException):  # carried to the loop's thread, which raises it there
                self._failure = self._failure or ended
            else:
                job.outcome, job.prefetched = ended, False
                self._scored = self._scored or ended.scored
                for group in job.groups:
                    if group.arrive(ended) and group.settled is not None:
                        self._begin(group)
                self._forget_unwanted(job)
            # The waiting thread is woken for nothing else: each time takes the others their turn.
            if job is self._awaited or self._failure is not None or not self._running:
                self._changed.notify_all()
        self._pump()

    def _begin(self, group: _Group) -> None:
        """Queue what is wanted of a group; what is not any more, and was not begun, is dropped."""
        group.plan()
        for job in group.jobs[: group.wanted]:
            if job.outcome is None:
                self._enqueue(job, 0.0 if group.in_order else self._expected(job.ask))
        for job in group.jobs[group.wanted :]:
            if job.queued and len(job.groups) <= 1 and not job.prefetched:
                job.queued = False
        group.ended = 0

    def _release(self, job: _Job, group: _Group) -> None:
        job.groups = [other for other in job.groups if other is not group]
        self._forget_unwanted(job)

    def _forget_unwanted(self, job: _Job) -> None:
        # The store answers from now on; a missing outcome is asked anew when somebody asks again.
        if not job.groups and not job.prefetched and not job.running:
            job.queued = False
            self._jobs.pop(job.key, None)
