"""Sessions as version 1.0.102 of the program printed them, shortened, and what is made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.records import Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.events import Events, read_events
from skillopt_lib_agent.process import Finished
from skillopt_lib_copilot.failures import failure_of, out_of_time
from skillopt_lib_copilot.program import COPILOT
from skillopt_lib_copilot.session import read_session
from skillopt_lib_copilot.usage import read_usage

KEY = "sk-secret-0123456789abcdef"


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "0b7c", "timestamp": "2026-11-30T03:51:52.698Z"}


def message(turn: int, content: str, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {"content": content, "toolRequests": list(requests), "turnId": str(turn), "model": "any", **more}
    return event("assistant.message", **told)


def answered(turn: int) -> dict[str, Any]:
    return event("model.call_finished", turnId=str(turn), outcome="success", dispatchDurationMs=33)


def asked(name: str, id_: str, **arguments: Any) -> dict[str, Any]:
    return {"toolCallId": id_, "name": name, "arguments": arguments, "type": "function"}


def failed(status: int | None, message: str, code: str | None = None) -> dict[str, Any]:
    told = {"type": "scripted", "message": message, **({"code": code} if code else {})}
    kind = {"statusCode": status, "failureKind": "api"} if status else {"failureKind": "transport"}
    return event("model.call_failure", model="any", retryAttempt=0, errorMessage=json.dumps(told), **kind)


def ended(code: int) -> dict[str, Any]:
    return {"type": "result", "exitCode": code, "usage": {"premiumRequests": 0}}


def verdict(
    tmp_path: Path, *events: dict[str, Any], code: int = 1, stderr: str = "", text: str = ""
) -> ModelError | None:
    """What is made of a session that printed these events and ended so."""
    out = tmp_path / "stdout"
    out.write_text("".join(json.dumps(each) + "\n" for each in events) + text, "utf-8")
    read = read_events(out)
    return failure_of(read_session(read), read, Finished(code, out, stderr, 1.0), COPILOT, Redactor([KEY]))


def test_every_tool_call_and_its_output_is_a_turn_and_the_answer_comes_after_the_last() -> None:
    denied = {"message": "Permission denied because no interactive user response was available.", "code": "denied"}
    session = read_session(
        Events(
            (
                event("user.message", content="Do the task", turnId="0"),
                answered(0),
                message(0, "I look at it.", asked("view", "c1", path="task.txt"), asked("bash", "c2", command="false")),
                event("tool.execution_complete", toolCallId="c1", success=True, result={"content": "the task\n"}),
                event("tool.execution_partial_result", toolCallId="c2", partialOutput=""),
                event(
                    "tool.execution_complete", toolCallId="c2", success=True, shellExecution={"exitCode": 1},
                    result={"content": "\n<shellId: 1 completed with exit code 1>"},
                ),
                answered(1),
                message(1, "", asked("view", "c3", path="/etc/hostname")),
                event("tool.execution_complete", toolCallId="c3", success=False, error=denied),
                message(1, "within another agent", parentToolCallId="c3"),
                answered(2),
                message(2, "<answer>"),
                message(2, "42</answer>"),
                ended(0),
            )
        )
    )  # fmt: skip
    assert session.answer == "<answer>\n42</answer>"
    said = [(turn.role, turn.content, [call.name for call in turn.tool_calls]) for turn in session.trajectory]
    assert said == [
        ("assistant", "I look at it.", []),
        ("assistant", "", ["view"]),
        ("assistant", "", ["bash"]),
        ("tool", "the task\n", []),
        ("tool", "\n<shellId: 1 completed with exit code 1>", []),
        ("assistant", "", ["view"]),
        ("tool", f"[denied] {denied['message']}", []),
        ("assistant", "<answer>", []),
        ("assistant", "42</answer>", []),
    ]
    assert json.loads(session.trajectory[1].tool_calls[0].arguments) == {"path": "task.txt"}
    assert not session.cut_off and not session.filtered


def test_what_was_said_before_a_tool_call_is_no_answer() -> None:
    session = read_session(Events((answered(0), message(0, "It is 42.", asked("view", "c1", path="x")), ended(0))))
    assert session.answer == ""


def test_a_reply_that_was_cut_off_is_told_apart() -> None:
    """Of its first two parts the program prints nothing, and asks the model to go on."""
    parts = (answered(0), answered(1), answered(2), message(2, "the last part"), ended(0))
    assert read_session(Events(parts)).cut_off


def test_a_sentence_of_the_program_in_place_of_a_withheld_reply_is_no_reply(tmp_path: Path) -> None:
    words = "The model returned no content because the response was blocked by content filtering."
    events = (answered(0), message(0, words), ended(0))
    assert read_session(Events(events)).filtered
    assert verdict(tmp_path, *events, code=0) is None


def test_a_reply_without_text_is_no_error(tmp_path: Path) -> None:
    error = event("session.error", errorType="query", message="No response was returned. Send your message again.")
    assert verdict(tmp_path, answered(0), message(0, ""), error, ended(1)) is None


def of(kind: str, words: str, status: int | None = None) -> dict[str, Any]:
    return event("session.error", errorType=kind, message=words, **({"statusCode": status} if status else {}))


RETRIED = "Failed to get response from the AI model; retried 5 times (total retry wait time: 5.51 seconds) Last error: "


@pytest.mark.parametrize(
    ("events", "kind", "words"),
    [
        ([failed(400, "no"), of("query", "400 no", 400)], RejectedRequest, "400 no"),
        ([failed(401, "no"), of("authentication", "Authentication failed", 401)], PermanentError, "not signed in"),
        ([failed(402, "pay"), of("query", "402 pay", 402)], PermanentError, "no credit"),
        ([failed(403, "no"), of("authentication", "Authentication failed", 403)], PermanentError, "may not use"),
        ([failed(404, "no"), of("query", "Model 'any' not found on provider", 404)], PermanentError, "model.target"),
        ([failed(429, "slow down"), of("rate_limit", f"{RETRIED}429 slow down", 429)], PassingError, "too many"),
        ([failed(500, "oops"), of("query", f"{RETRIED}500 oops", 500)], PassingError, "could not answer"),
        ([failed(413, "large"), of("query", "The provider rejected the prompt as too long, but")], ContextTooLong, ""),
        ([failed(400, "no", "context_length_exceeded"), of("query", "400 no", 400)], ContextTooLong, ""),
        ([failed(400, "no", "content_filter"), of("query", "400 no", 400)], RefusedError, ""),
        ([failed(None, "connection closed"), of("query", f"{RETRIED}connection closed")], PassingError, "connection"),
        ([of("query", "Request exceeds the model's prompt budget after reserving output")], ContextTooLong, ""),
        ([of("query", "No response was returned. Send your message again to retry.")], ContextTooLong, ""),
        ([of("quota", "You have used up your premium requests")], PermanentError, "no credit or quota"),
        ([of("rate_limit", "Try again in 40 seconds")], PassingError, "too many"),
        ([of("context_limit", "The conversation is too long")], ContextTooLong, ""),
        ([of("policy", "Your organisation does not allow this")], PermanentError, "may not use"),
    ],
)  # fmt: skip
def test_an_error_in_the_events_is_typed(tmp_path: Path, events: list[Any], kind: type[ModelError], words: str) -> None:
    found = verdict(tmp_path, *events, ended(1))
    assert type(found) is kind
    assert words in str(found)


def test_a_rate_limit_asks_for_fewer_calls_and_for_the_wait_that_its_words_tell(tmp_path: Path) -> None:
    found = verdict(tmp_path, of("rate_limit", "You are limited. Try again in 40 seconds.", 429), ended(1))
    assert isinstance(found, PassingError)
    assert (found.overloaded, found.retry_after) == (True, 40.0)


def test_a_failure_that_a_later_call_made_good_is_none(tmp_path: Path) -> None:
    events = (failed(500, "oops"), answered(0), message(0, "It is 42."), ended(0))
    assert verdict(tmp_path, *events, code=0) is None


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        ("Error: No authentication information found.\n\nCopilot can be", PermanentError, "COPILOT_GITHUB_TOKEN"),
        ("BYOK providers require an explicit model.", PermanentError, "Name one in `model.optimizer`"),
        ("error: unexpected argument '--nosuch' found", PermanentError, "copilot@latest"),
        ("GitHub Copilot native binary was terminated by signal SIGKILL.", PassingError, "ended by a signal"),
        ("", PassingError, "end before their result"),
    ],
)
def test_a_program_that_never_began_is_told_by_its_words(
    tmp_path: Path, stderr: str, kind: type[ModelError], words: str
) -> None:
    found = verdict(tmp_path, stderr=stderr)
    assert type(found) is kind
    assert words in str(found)


def test_events_that_break_off_are_no_answer(tmp_path: Path) -> None:
    found = verdict(tmp_path, answered(0), message(0, "It is 42."), code=0, text='{"type": "res')
    assert isinstance(found, PassingError)
    assert found.charged, "it was asked, and nobody knows what it used"


def test_no_message_shows_a_credential(tmp_path: Path) -> None:
    found = verdict(tmp_path, failed(400, f"the key {KEY} is of no use"), of("query", f"400 {KEY}", 400), ended(1))
    assert KEY not in str(found)
    assert KEY not in str(verdict(tmp_path, stderr=f"what is {KEY}?"))


def test_at_the_deadline_the_call_that_was_to_be_asked_again_says_why() -> None:
    late = CallTimeout("no answer after 60 s")
    waiting = read_session(Events((failed(429, "slow down"),)))
    found = out_of_time(waiting, late, COPILOT, Redactor())
    assert isinstance(found, PassingError) and not isinstance(found, CallTimeout)
    assert found.overloaded and "slow down" in str(found)
    assert out_of_time(read_session(Events(())), late, COPILOT, Redactor()) is late


def test_use_is_added_up_over_models(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    one = {"usage": {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 60, "cacheWriteTokens": 0}}
    two = {"usage": {"inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 0, "reasoningTokens": 7}}
    path.write_text(json.dumps({"modelMetrics": {"a": one, "b": two}}), "utf-8")
    assert read_usage(path) == Usage(1, 110, 22, 60, 7)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"modelMetrics": {}}', '{"modelMetrics": {"a": {"usage": 3}}}'])
def test_what_nobody_tells_is_unknown_and_not_zero(tmp_path: Path, text: str) -> None:
    """O-C3."""
    path = tmp_path / "usage.json"
    assert read_usage(path) == Usage(1, unknown_calls=1)
    path.write_text(text, "utf-8")
    assert read_usage(path) == Usage(1, unknown_calls=1)
