"""What every executor must keep. Its jobs are those of the environment `rehearsal`, which the testkit brings."""

from __future__ import annotations

import io
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import define, evolve, field
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import CallTimeout, Cancelled, PassingError, PermanentError, RefusedError
from skillopt_kernel.execution import AttemptJob, AttemptResult, ModelCalls
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.worker import Workplace, perform
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Attempt, Usage

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.rehearsal.environment import RehearsalEnvironment, RehearsalSettings, task_of

WAIT = 60.0
"""Seconds after which a job that has not come back is taken for lost."""


@define(eq=False)
class Calls:
    """The model calls of all jobs, answered by functions and counted."""

    target: Callable[[ChatRequest], ChatReply] = lambda _: ChatReply("four", usage=Usage(1, 10, 2))
    judge: Callable[[ChatRequest], ChatReply] = lambda _: ChatReply("well done", usage=Usage(1))
    requests: list[ChatRequest] = field(init=False, factory=list)
    processes: set[int] = field(init=False, factory=set)
    peak: int = field(init=False, default=0)
    _now: int = field(init=False, default=0)
    _lock: Any = field(init=False, factory=threading.Lock)

    @property
    def given(self) -> ModelCalls:
        return ModelCalls(self._counted(self.target), self._counted(self.judge), self._no_agent)

    def _counted(self, answer: Callable[[ChatRequest], ChatReply]) -> Callable[[ChatRequest], ChatReply]:
        def call(request: ChatRequest) -> ChatReply:
            with self._lock:
                self.requests.append(request)
                self.processes.add(os.getpid())
                self._now += 1
                self.peak = max(self.peak, self._now)
            try:
                return answer(request)
            finally:
                with self._lock:
                    self._now -= 1

        return call

    @staticmethod
    def _no_agent(_: Any) -> Any:
        raise PermanentError("name an agent backend.")


def job(name: str, attempt: Sequence[str] = (), score: Sequence[str] = (), **options: Any) -> AttemptJob:
    """A job that does these things before it asks "Two and two?"; the answer is "four"."""
    task = task_of(name, "Two and two?", "four", attempt, score)
    return AttemptJob(int.from_bytes(name.encode()), task, "# Be brief", **{"stage": "rollout", "seed": 3, **options})


def plain(result: AttemptResult) -> AttemptResult:
    """The result without what differs from run to run: seconds, and in which process it was."""
    if result.attempt is None:
        return result
    state = {key: value for key, value in result.attempt.state.items() if key != "worker"}
    return evolve(result, attempt=evolve(result.attempt, seconds=0.0, state=state))


def is_there(process: int) -> bool:
    """Whether a process of this number exists and is no corpse."""
    status = Path(f"/proc/{process}/stat")
    if status.exists():
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return not Path("/proc/self").exists()


class ExecutorConformance(PluginConformance):
    """Subclass it and give `name`. The executor runs with two workers unless a test says otherwise."""

    kind = "executor"
    workers: ClassVar[int] = 2

    @pytest.fixture
    def stopping(self) -> threading.Event:
        return threading.Event()

    @pytest.fixture
    def rehearsal(self, tmp_path: Path) -> RehearsalSettings:
        return RehearsalSettings(isolation="thread", marks=tmp_path / "marks")

    @pytest.fixture
    def context(self, stopping: threading.Event, rehearsal: RehearsalSettings) -> DriverContext:
        common = EnvSettings(name="rehearsal", workers=self.workers)
        context = DriverContext(logging.getLogger("skillopt.testkit"), seed=7, common=common)
        environment = RehearsalEnvironment(rehearsal, context)
        return evolve(context, common=Workplace(environment, "rehearsal", rehearsal, common, stopping))

    @pytest.fixture
    def executor(self, driver: Any) -> Iterator[Any]:
        yield driver
        driver.close()

    def results(self, executor: Any, jobs: Sequence[AttemptJob], calls: Calls | None = None) -> list[AttemptResult]:
        """The result of each job, in order; never more than `capacity` of them at a time."""
        calls = calls or Calls()
        arrived: queue.SimpleQueue[tuple[int, AttemptResult]] = queue.SimpleQueue()
        results: dict[int, AttemptResult] = {}
        waiting = list(reversed(jobs))
        under_way = 0
        while waiting or under_way:
            while waiting and under_way < executor.capacity:
                next_job = waiting.pop()
                under_way += 1
                executor.submit(next_job, calls.given, lambda result, id=next_job.id: arrived.put((id, result)))
            number, result = arrived.get(timeout=WAIT)
            assert number not in results, "a job was done twice"
            results[number], under_way = result, under_way - 1
        time.sleep(0.05)
        assert arrived.empty(), "a job was done twice"
        return [results[each.id] for each in jobs]

    def test_has_as_many_workers_as_were_asked_for(self, executor: Any) -> None:
        assert executor.capacity == self.workers

    def test_each_job_is_done_once_with_its_own_result(self, executor: Any) -> None:
        calls = Calls(lambda request: ChatReply(f"four {request.seed}"))
        results = self.results(executor, [job(f"t{number}", seed=number) for number in range(30)], calls)
        assert [result.attempt and result.attempt.output for result in results] == [f"four {n}" for n in range(30)]
        assert len(calls.requests) == 30

    def test_jobs_run_at_the_same_time_up_to_its_capacity(self, executor: Any) -> None:
        together = threading.Barrier(self.workers)

        def meet(request: ChatRequest) -> ChatReply:
            together.wait(WAIT)  # comes back only when as many calls are under way
            return ChatReply("four")

        calls = Calls(meet)
        results = self.results(executor, [job(f"t{number}") for number in range(4 * self.workers)], calls)
        assert all(result.score for result in results)
        assert calls.peak == self.workers

    @pytest.mark.parametrize("deeds", [(), ("note",), ("print", "read")])
    @pytest.mark.parametrize("scoring", [(), ("judge",)])
    def test_a_result_is_what_the_work_gives_anywhere(
        self, executor: Any, context: DriverContext, deeds: Sequence[str], scoring: Sequence[str], monkeypatch: Any
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        asked = job("t", deeds, scoring)
        here = perform(asked, context.common.environment, Calls().given, threading.Event())
        (there,) = self.results(executor, [asked])
        assert plain(there) == plain(here)
        assert there.score is not None and there.score.hard == 1.0

    def test_model_calls_are_made_in_the_runs_process(self, executor: Any) -> None:
        calls = Calls()
        self.results(executor, [job("t", score=["judge"], call_timeout=9.0)], calls)
        assert calls.processes == {os.getpid()}
        target, judge = calls.requests
        assert (target.stage, target.seed, judge.stage) == ("rollout", 3, "judge")
        assert all(0.0 < (each.deadline or 0.0) - time.monotonic() < 9.0 for each in calls.requests)

    def test_an_attempt_does_not_see_the_reference(self, executor: Any) -> None:
        (result,) = self.results(executor, [job("t")])
        assert result.attempt is not None and result.attempt.state["reference"] is None

    def test_an_attempt_that_was_made_is_only_scored(self, executor: Any) -> None:
        calls = Calls()
        (result,) = self.results(executor, [evolve(job("t", ["raise"]), attempt=Attempt("it is four"))], calls)
        assert result.score is not None and result.score.hard == 1.0
        assert result.attempt == Attempt("it is four")
        assert calls.requests == []

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (PassingError("503", 2.0), "endpoint"),
            (CallTimeout("no reply"), "call_timeout"),
            (KeyError("x"), "environment"),
        ],
    )
    def test_a_call_that_fails_has_its_reason(self, executor: Any, error: Exception, reason: str) -> None:
        (result,) = self.results(executor, [job("t")], Calls(failing(error)))
        assert result.missing is not None and result.missing.reason == reason

    def test_a_refused_call_is_the_targets_own_doing(self, executor: Any) -> None:
        (result,) = self.results(executor, [job("t")], Calls(failing(RefusedError("no"))))
        assert result.attempt is not None and result.attempt.ended == "refused"

    @pytest.mark.parametrize("role", ["target", "judge"])
    def test_what_must_end_the_run_is_handed_on(self, executor: Any, role: str) -> None:
        calls = Calls(**{role: failing(PermanentError("no key; set one"))})
        (result,) = self.results(executor, [job("t", score=["judge"])], calls)
        assert isinstance(result.failure, PermanentError)
        assert str(result.failure) == "no key; set one"

    @pytest.mark.parametrize(("deed", "words"), [("raise", "a defect of the environment"), ("exit", "SystemExit: 3")])
    def test_a_defect_of_the_environment_has_no_score(self, executor: Any, deed: str, words: str) -> None:
        attempted, scored = self.results(executor, [job("a", [deed]), job("s", score=[deed])])
        for result in (attempted, scored):
            assert result.missing is not None and words in result.missing.message
        assert attempted.attempt is None
        assert scored.attempt is not None, "what was attempted is kept, so that only scoring is asked again"

    def test_an_attempt_out_of_time_is_the_targets_own_doing(self, executor: Any) -> None:
        def slow(request: ChatRequest) -> ChatReply:
            time.sleep(max(0.0, (request.deadline or 0.0) - time.monotonic()))
            raise CallTimeout("no reply")

        (result,) = self.results(executor, [job("t", attempt_timeout=0.3, call_timeout=20.0)], Calls(slow))
        assert result.attempt is not None and result.attempt.ended == "attempt_timeout"
        assert result.score is not None and result.score.hard == 0.0
        assert [turn.role for turn in result.attempt.trajectory] == ["system", "user"]

    def test_a_run_that_is_given_up_cuts_calls_short(self, executor: Any, stopping: threading.Event) -> None:
        def wait(request: ChatRequest) -> ChatReply:
            stopping.set()
            raise Cancelled("the run is stopping")

        (result,) = self.results(executor, [job("t")], Calls(wait))
        assert result.missing is not None and result.missing.reason == "cancelled"

    def test_closing_leaves_nothing_behind(self, driver: Any) -> None:
        before = threading.active_count()
        results = self.results(driver, [job(f"t{number}", ["child"] if number else []) for number in range(2)])
        states = [result.attempt.state for result in results if result.attempt is not None]
        driver.close()
        ended = {state["worker"] for state in states} - {os.getpid()}
        ended |= {state["child"] for state in states if "child" in state and ended}
        until = time.monotonic() + 10
        while (any(map(is_there, ended)) or threading.active_count() > before) and time.monotonic() < until:
            time.sleep(0.02)
        assert not [process for process in ended if is_there(process)]
        assert threading.active_count() <= before
        if not ended:
            for state in states:
                if "child" in state:
                    os.kill(state["child"], 9)

    def test_closing_without_a_job_does_nothing(self, driver: Any) -> None:
        driver.close()


def failing(error: Exception) -> Callable[[ChatRequest], ChatReply]:
    def call(request: ChatRequest) -> ChatReply:
        raise error

    return call
