"""An attempt from start to commit: what is the target's doing is scored, what is not has no score."""

import logging
import queue
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from skillopt_kernel.errors import (
    BudgetSpent,
    CallTimeout,
    ConfigError,
    ContextTooLong,
    EnvironmentFailure,
    PassingError,
    PermanentError,
    RefusedError,
)
from skillopt_kernel.execution import AttemptJob, AttemptResult, Done, ModelCalls
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop import worker
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.jobs import AttemptJobs, Limits
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.loop.threads import ThreadExecutor, make_executor
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest, Message
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome, Score, Task, Usage
from skillopt_kernel.store.redaction import Redactor

TASK = Task("t1", "kind", {"question": "Which?"}, reference="gold")
PURPOSE = Purpose("rollout", "steps/step_0001/rollout")


class Memory:
    """A journal in memory."""

    def __init__(self, kept: Attempt | None = None) -> None:
        self.kept, self.put_outcomes = kept, list[Outcome]()

    def put(self, ask: Ask, outcome: Outcome) -> Outcome:
        self.put_outcomes.append(outcome)
        return outcome

    def unscored_attempt(self, ask: Ask) -> Attempt | None:
        return self.kept


class OneQuestion:
    """Asks once and compares; may be told to fail anywhere."""

    targets, isolation = frozenset({"chat"}), "thread"

    def __init__(self, error: Exception | None = None, scoring: Exception | None = None, ended: str | None = None):
        self.error, self.scoring, self.ended = error, scoring, ended
        self.seen: list[Task] = []
        self.attempts = 0

    def attempt(self, task: Task, skill: str, target: Any) -> Attempt:
        self.seen.append(task)
        self.attempts += 1
        if self.error is not None:
            raise self.error
        reply = target.chat([Message("system", skill), Message("user", task.inputs["question"])])
        return Attempt(reply.text, ended=self.ended)

    def score(self, task: Task, attempt: Attempt, judge: Any) -> Score:
        if self.scoring is not None:
            raise self.scoring
        right = float(attempt.output == task.reference)
        return Score(right, 0.5, "compared")


def answer(request: ChatRequest) -> ChatReply:
    return ChatReply("gold", usage=Usage(1, 10, 2))


def work(job: AgentJob) -> AgentResult:
    """The agent: says for which stage it worked and how many seconds it had left."""
    left = None if job.deadline is None else round(job.deadline - time.monotonic())
    return AgentResult(f"{job.stage} {left}", {"a.txt": b"gold"}, usage=Usage(1, 20, 3))


def ended(environment: Any, complete: Any = answer, journal: Any = None, agent: Any = work, **limits: float) -> Any:
    """How an ask ends on a thread: an outcome, or what must end the run."""
    stop = threading.Event()
    events, unscored = list[str](), list[str]()
    executor = ThreadExecutor(1, lambda job, calls: worker.perform(job, environment, calls, stop))
    jobs = AttemptJobs(
        executor,
        calls=lambda ask, purpose: ModelCalls(complete, answer, agent),
        scoring_failed=lambda ask: unscored.append(ask.task.id),
        journal=journal or Memory(),
        digest=lambda skill: "h",
        limits=Limits(call_timeout=limits.get("call"), attempt_timeout=limits.get("attempt")),
        stop=stop,
        emit=lambda name, **data: events.append(name),
    )
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    jobs.start(Ask("the skill", TASK), PURPOSE, arrived.put)
    result = arrived.get(timeout=30)
    executor.close()
    assert events == ["attempt_started", "attempt_finished"][: 2 if isinstance(result, Outcome) else 1]
    kept = isinstance(result, Outcome) and result.missing is not None and result.attempt is not None
    assert unscored == (["t1"] if kept else [])
    return result


def perform(environment: Any, complete: Any = answer, journal: Any = None, **limits: float) -> Outcome:
    outcome = ended(environment, complete, journal, **limits)
    assert isinstance(outcome, Outcome), outcome
    return outcome


def test_an_attempt_is_recorded_turn_by_turn_and_never_sees_the_reference() -> None:
    environment = OneQuestion()
    outcome = perform(environment)
    assert outcome.score == Score(1.0, 0.5, "compared")
    assert outcome.attempt is not None
    assert [(turn.role, turn.content) for turn in outcome.attempt.trajectory] == [
        ("system", "the skill"),
        ("user", "Which?"),
        ("assistant", "gold"),
    ]
    assert outcome.attempt.usage.prompt_tokens == 10
    assert environment.seen[0].reference is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PassingError("503"), "endpoint"),
        (CallTimeout("no reply"), "call_timeout"),
        (EnvironmentFailure("no simulator"), "environment"),
        (KeyError("a defect"), "environment"),
    ],
)
def test_what_the_target_cannot_help_has_no_score(error: Exception, reason: str) -> None:
    outcome = perform(OneQuestion(error))
    assert outcome.score is None
    assert outcome.missing is not None
    assert outcome.missing.reason == reason
    with pytest.raises(ValueError, match="no score"):
        _ = outcome.hard


@pytest.mark.parametrize(
    ("error", "ended"), [(RefusedError("no"), "refused"), (ContextTooLong("long"), "context_exceeded")]
)
def test_the_targets_own_doing_is_scored_zero(error: Exception, ended: str) -> None:
    outcome = perform(OneQuestion(error))
    assert outcome.score is not None and outcome.attempt is not None
    assert (outcome.score.hard, outcome.attempt.ended) == (0.0, ended)


def test_partial_credit_of_an_attempt_out_of_turns_is_kept() -> None:
    outcome = perform(OneQuestion(ended="max_turns"))
    assert outcome.score is not None
    assert (outcome.score.hard, outcome.score.soft) == (0.0, 0.5)
    assert outcome.score.feedback.startswith("The attempt ran out of turns.")


def test_a_permanent_error_ends_the_run() -> None:
    error = PermanentError("set the key")
    assert ended(OneQuestion(error)) is error


class Agentic(OneQuestion):
    def attempt(self, task: Task, skill: str, target: Any) -> Attempt:
        result = target.agent(AgentJob("work", skill))
        return Attempt(result.message, files=result.files)


def test_an_agents_job_has_its_stage_and_its_time_and_leaves_files_turns_and_usage() -> None:
    attempt = ended(Agentic(), call=30, attempt=3000).attempt
    assert (attempt.output, attempt.files, attempt.usage) == ("rollout 30", {"a.txt": b"gold"}, Usage(1, 20, 3))
    assert [(turn.role, turn.content) for turn in attempt.trajectory] == [("user", "work"), ("assistant", "rollout 30")]
    assert ended(Agentic()).attempt.output == "rollout None"


def test_an_agents_job_for_a_chat_model_ends_the_run() -> None:
    def refuse(job: AgentJob) -> AgentResult:
        raise ConfigError("no agent")

    assert isinstance(ended(Agentic(), agent=refuse), ConfigError)


def test_an_environment_that_exits_is_a_fault_of_the_environment() -> None:
    outcome = perform(OneQuestion(SystemExit(3)))  # type: ignore[arg-type]
    assert outcome.missing is not None
    assert (outcome.missing.reason, outcome.missing.message) == ("environment", "SystemExit: 3")


class Unsteady:
    """An executor whose workers are lost so often, the last time while they score."""

    capacity = 1

    def __init__(self, losses: int, stop: threading.Event | None = None) -> None:
        self.losses, self.stop = losses, stop
        self.jobs: list[AttemptJob] = []

    def submit(self, job: AttemptJob, calls: ModelCalls, done: Done) -> None:
        self.jobs.append(job)
        if len(self.jobs) <= self.losses:
            kept = Attempt("kept") if len(self.jobs) == self.losses else None
            if self.stop is not None:
                self.stop.set()
            done(AttemptResult(attempt=kept, lost="the worker ended"))
        else:
            done(worker.perform(job, OneQuestion(), calls, threading.Event()))

    def close(self) -> None: ...


def run_on(executor: Unsteady) -> tuple[Any, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    jobs = AttemptJobs(
        executor,
        calls=lambda ask, purpose: ModelCalls(answer, answer, work),
        scoring_failed=lambda ask: None,
        journal=Memory(),  # type: ignore[arg-type]
        digest=lambda skill: "h",
        limits=Limits(None, None),
        stop=executor.stop or threading.Event(),
        emit=lambda name, **data: events.append(data),
    )
    arrived: list[Any] = []
    jobs.start(Ask("the skill", TASK), PURPOSE, arrived.append)
    assert len(arrived) == 1
    return arrived[0], events


def test_a_lost_job_is_run_again_and_an_attempt_that_was_made_is_only_scored() -> None:
    executor = Unsteady(2)
    outcome, events = run_on(executor)
    assert [job.attempt for job in executor.jobs] == [None, None, Attempt("kept")]
    assert outcome.score == Score(0.0, 0.5, "compared")
    assert events[-1]["tries"] == 3


def test_a_job_that_is_lost_three_times_has_a_typed_reason() -> None:
    executor = Unsteady(9)
    outcome, _ = run_on(executor)
    assert len(executor.jobs) == 3
    assert outcome.missing == Missing("worker", "the worker ended (worker lost, run 3 times)")


def test_nothing_lost_is_run_again_once_the_run_is_given_up() -> None:
    executor = Unsteady(9, threading.Event())
    run_on(executor)
    assert len(executor.jobs) == 1


def test_an_attempt_out_of_time_is_a_failure_and_a_call_cut_short_by_it_too() -> None:
    def slow(request: ChatRequest) -> ChatReply:
        assert request.deadline is not None
        time.sleep(max(0.0, request.deadline - time.monotonic()))
        raise CallTimeout("no reply")

    outcome = perform(OneQuestion(), slow, attempt=0.05, call=10.0)
    assert outcome.attempt is not None and outcome.score is not None
    assert (outcome.attempt.ended, outcome.score.hard) == ("attempt_timeout", 0.0)


def test_a_call_without_a_reply_in_time_is_missing_when_the_attempt_has_time_left() -> None:
    def slow(request: ChatRequest) -> ChatReply:
        raise CallTimeout("no reply in 0.05 s")

    outcome = perform(OneQuestion(), slow, attempt=60.0, call=0.05)
    assert outcome.missing is not None and outcome.missing.reason == "call_timeout"


def test_when_scoring_failed_only_scoring_is_asked_again() -> None:
    journal = Memory()
    failed = perform(OneQuestion(scoring=OSError("disk")), journal=journal)
    assert failed.missing is not None and failed.attempt is not None
    environment = OneQuestion()
    again = perform(environment, journal=Memory(kept=failed.attempt))
    assert again.score == Score(1.0, 0.5, "compared")
    assert environment.attempts == 0


def test_a_conversation_that_grows_is_recorded_once() -> None:
    target = AttemptTarget(
        lambda request: ChatReply(f"reply {len(request.messages)}"), work, stage="rollout", deadline=None,
        call_timeout=None, stop=threading.Event(),
    )  # fmt: skip
    messages = [Message("system", "S"), Message("user", "U1")]
    first = target.chat(messages)
    target.note("the door opens", step=1)
    target.chat([*messages, Message("assistant", first.text), Message("user", "U2")])
    assert [(turn.role, turn.content) for turn in target.trajectory] == [
        ("system", "S"),
        ("user", "U1"),
        ("assistant", "reply 2"),
        ("environment", "the door opens"),
        ("user", "U2"),
        ("assistant", "reply 4"),
    ]


def test_case_o_p1_feedback_quotes_no_half_of_a_key_that_the_environment_came_upon() -> None:
    """What a tool or a file says is the environment's own text: the key is gone before it is cut for the feedback."""
    key = "sk-0123456789-of-the-test"
    seen: list[str] = []

    class FoundAKey(OneQuestion):
        def attempt(self, task: Task, skill: str, target: Any) -> Attempt:
            return Attempt(f"the file says {key}", files={"log.txt": key.encode()})

        def score(self, task: Task, attempt: Attempt, judge: Any) -> Score:
            seen.append(attempt.output)
            return Score(0.0, 0.0, f"wrong: {attempt.output[:20]}...")

    common = SimpleNamespace(workers=1)
    stop = threading.Event()
    place = worker.Workplace(FoundAKey(), "found", None, common, stop, Redactor([key]).redact_value)
    executor = make_executor(None, DriverContext(logging.getLogger("test"), common=place))
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    executor.submit(AttemptJob(1, TASK, "the skill", "rollout", 1), ModelCalls(answer, answer, work), arrived.put)
    result = arrived.get(timeout=60)
    executor.close()
    assert seen == ["the file says [redacted]"]
    assert result.attempt.files == {"log.txt": b"[redacted]"}
    assert "sk-" not in result.score.feedback


class Careless(OneQuestion):
    """Takes every failure of a call for a wrong answer."""

    def attempt(self, task: Task, skill: str, target: Any) -> Attempt:
        try:
            return super().attempt(task, skill, target)
        except Exception:
            return Attempt("")

    def score(self, task: Task, attempt: Attempt, judge: Any) -> Score:
        try:
            judge.chat([Message("user", "right?")])
        except Exception:
            return Score(0.0, 0.0)
        return super().score(task, attempt, judge)


@pytest.mark.parametrize("error", [BudgetSpent("no dollar left"), PermanentError("no key")])
def test_what_ends_the_run_ends_it_though_the_environment_caught_it(error: Exception) -> None:
    def failing(request: ChatRequest) -> ChatReply:
        raise error

    assert ended(Careless(), failing) is error

    stop, job = threading.Event(), AttemptJob(1, TASK, "the skill", "rollout")
    result = worker.perform(job, Careless(), ModelCalls(answer, failing, work), stop)
    assert result.failure is error
    assert worker.perform(job, Careless(), ModelCalls(answer, answer, work), stop).failure is None
