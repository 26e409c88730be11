"""What a program prints, and what is made of it: events, turns, typed errors."""

from __future__ import annotations

import json

import pytest
from skillopt_kernel.errors import ContextTooLong, PassingError, PermanentError, RefusedError, RejectedRequest
from skillopt_kernel.records import ToolCall, Turn
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.events import count_of, read_events, read_object
from skillopt_lib_agent.failures import Program, failure, killed, quoted, status_in, wait_in
from skillopt_lib_agent.trajectory import TrajectoryBuilder, shortened

TOOL = Program("Tool", "tool", "model.tool_path", "npm install tool", "Set TOOL_KEY.")


def written(tmp_path, data: bytes):
    path = tmp_path / "stdout"
    path.write_bytes(data)
    return path


def test_events_are_read_and_what_is_none_is_counted(tmp_path):
    data = b'{"type": "a", "n": 1}\r\n\nnot signed in\n[1]\n{"type": "b"}\n{"type": "a", "n": 2}\n{"torn": '
    events = read_events(written(tmp_path, data))
    assert [event["type"] for event in events.items] == ["a", "b", "a"]
    assert events.unreadable == 3 and events.text.startswith("not signed in\n[1]")
    assert events.last("a") == {"type": "a", "n": 2} and events.last("c") is None


def test_a_line_without_end_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr("skillopt_lib_agent.events.LONGEST_LINE", 100)
    events = read_events(written(tmp_path, b'{"x": "' + b"y" * 1000 + b'"}\n{"type": "a"}\n'))
    assert events.items == ({"type": "a"},) and events.unreadable == 1


def test_bytes_that_are_no_text_and_depth_without_end_spoil_one_line(tmp_path):
    events = read_events(written(tmp_path, b'\xff\xfe\n{"a": ' + b"[" * 100_000 + b'\n{"type": "a"}\n'))
    assert events.items == ({"type": "a"},) and events.unreadable == 2


def test_one_object_is_found_beside_other_words(tmp_path):
    assert read_object(written(tmp_path, b'{\n "a": 1\n}\n')) == {"a": 1}
    assert read_object(written(tmp_path, b'warning\n{"a": 1}\n{"a": 2}\n')) == {"a": 2}
    assert read_object(written(tmp_path, b"words\n")) is None


def test_counts_are_counts():
    assert [count_of(value) for value in (3, 0, -1, True, "3", None)] == [3, 0, None, None, None, None]


def test_turns_are_kept_in_order_and_the_answer_is_what_comes_after_the_last_call():
    turns = TrajectoryBuilder()
    turns.said("I look.")
    turns.called("shell", {"command": "ls"}, "c1")
    assert turns.answer == ""
    turns.returned("c1", "a.txt", code=2)
    turns.said(" ")
    turns.called("write", '{"path": "b"}', "c2")
    turns.returned("c2", "not permitted", denied=True)
    turns.said("Done.")
    assert turns.answer == "Done."
    assert turns.turns == (
        Turn("assistant", "I look."),
        Turn("assistant", "", (ToolCall("c1", "shell", '{"command": "ls"}'),)),
        Turn("tool", "a.txt\n[exit code 2]", tool_call_id="c1"),
        Turn("assistant", "", (ToolCall("c2", "write", '{"path": "b"}'),)),
        Turn("tool", "[denied] not permitted", tool_call_id="c2"),
        Turn("assistant", "Done."),
    )


def test_long_outputs_lose_their_middle():
    assert shortened("a" * 60 + "b" * 60, 100) == "a" * 50 + "\n[... 20 characters left out ...]\n" + "b" * 50


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("unexpected status 401 Unauthorized: no such key: sk-operator-key-12345", PermanentError),
        ("Not logged in · Please run /login", PermanentError),
        ("Missing environment variable: `KEY`.", PermanentError),
        ("unexpected status 403 Forbidden: x", PermanentError),
        ("unexpected status 404 Not Found: x", PermanentError),
        ("The model `x` does not exist", PermanentError),
        ("exceeded retry limit, last status: 429 Too Many Requests", PassingError),
        ("API Error: 529 overloaded", PassingError),
        ("unexpected status 503 Service Unavailable: x", PassingError),
        ("stream disconnected before completion", PassingError),
        ("API Error: 400 invalid", RejectedRequest),
        ("something else", RejectedRequest),
        ("", RejectedRequest),
        ("ran out of room in the model's context window", ContextTooLong),
        ("API Error: 400 prompt is too long: 9 > 8", ContextTooLong),
        ("blocked by content_policy", RefusedError),
        ("You exceeded your current quota (insufficient_quota)", PermanentError),
    ],
)
def test_words_of_a_program_become_typed_errors(said, kind):
    error = failure(TOOL, said, Redactor())
    assert type(error) is kind
    assert str(error).startswith("Tool ") and str(error).endswith(".")
    assert "sk-operator" not in str(error)


def test_a_wait_that_is_asked_for_is_told():
    error = failure(TOOL, "status 429: Rate limit reached. Please try again in 1.5s.", Redactor())
    assert isinstance(error, PassingError) and (error.retry_after, error.overloaded) == (1.5, True)
    assert wait_in("try again in 200ms") == 0.2 and wait_in("later") is None
    assert status_in("HTTP/1.1 404") == 404 and status_in("line 404") is None


def test_no_error_shows_a_credential():
    """O-P: the matching works on the raw text, what is told is redacted, also where it is cut."""
    secret = "top-secret-credential-1"
    redactor = Redactor([secret])
    assert secret not in quoted("x" * 290 + " " + secret, redactor)
    said = f"500 status 500 {secret} Authorization: Bearer {secret}"
    for error in (failure(TOOL, said, redactor), killed(TOOL, -9, redactor, said)):
        assert secret not in str(error) and "redacted" in str(error)


def test_an_error_of_a_killed_child_counts_as_paid():
    assert killed(TOOL, -9, Redactor(), json.dumps({})).charged
