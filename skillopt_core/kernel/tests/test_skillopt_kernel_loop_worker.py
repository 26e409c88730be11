"""An attempt from start to commit: what is the target's doing is scored, what is not has no score."""

import threading
import time
from typing import Any

import pytest
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    EnvironmentFailure,
    PassingError,
    PermanentError,
    RefusedError,
)
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.loop.worker import AttemptWorker, Limits
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message
from skillopt_kernel.records import Ask, Attempt, Outcome, Score, Task, Usage

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


def perform(environment: Any, complete: Any = None, journal: Any = None, **limits: float) -> Outcome:
    def answer(request: ChatRequest) -> ChatReply:
        return ChatReply("gold", usage=Usage(1, 10, 2))

    events: list[tuple[str, dict[str, Any]]] = []
    worker = AttemptWorker(
        environment,
        target=lambda stage: complete or answer,
        agent=None,
        judge=answer,
        journal=journal or Memory(),
        digest=lambda skill: "h",
        limits=Limits(call_timeout=limits.get("call"), attempt_timeout=limits.get("attempt")),
        stop=threading.Event(),
        emit=lambda name, **data: events.append((name, data)),
    )
    outcome = worker.perform(Ask("the skill", TASK), PURPOSE)
    assert [name for name, _ in events] == ["attempt_started", "attempt_finished"]
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
    with pytest.raises(PermanentError, match="set the key"):
        perform_quietly(OneQuestion(PermanentError("set the key")))


def perform_quietly(environment: Any) -> None:
    worker = AttemptWorker(
        environment,
        target=lambda stage: lambda request: ChatReply(""),
        agent=None,
        judge=lambda request: ChatReply(""),
        journal=Memory(),
        digest=lambda skill: "h",
        limits=Limits(call_timeout=None, attempt_timeout=None),
        stop=threading.Event(),
        emit=lambda name, **data: None,
    )
    worker.perform(Ask("s", TASK), PURPOSE)


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
        lambda request: ChatReply(f"reply {len(request.messages)}"), None, stage="rollout", deadline=None,
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
