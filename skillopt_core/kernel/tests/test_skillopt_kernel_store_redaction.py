"""Credentials never reach a file; what is cut is cut after they are replaced."""

import json

import pytest
from skillopt_kernel.records import Attempt, ToolCall, Turn
from skillopt_kernel.store.redaction import MARKER, Redactor, redact_diagnostics

KEY = "sk-" + "a1B2" * 10


def test_credentials_are_replaced_everywhere_the_longest_first() -> None:
    redactor = Redactor([KEY[:20], KEY, "", "  "])
    assert redactor.redact(f"use {KEY}, not {KEY[:20]}!") == f"use {MARKER}, not {MARKER}!"
    value = {KEY: [KEY, 1, None, {"a": (f"x{KEY}",)}], "b": 0.5, "c": True}
    assert redactor.redact_value(value) == {MARKER: [MARKER, 1, None, {"a": (f"x{MARKER}",)}], "b": 0.5, "c": True}


def test_a_credential_with_quotes_is_found_inside_json_text_too() -> None:
    secret = 'pass"word\\1'
    assert secret not in json.loads(Redactor([secret]).redact(json.dumps({"password": secret})))["password"]


def test_records_keep_their_closed_words_whatever_the_credential() -> None:
    turn = Turn("assistant", "assistant", tool_calls=(ToolCall("1", "f", "assistant"),))
    attempt = Attempt("max_turns", (turn,), files={"a": b"max_turns", "b": b"\xffmax_turns"}, ended="max_turns")
    redacted = Redactor(["assistant", "max_turns"]).redact_value(attempt)
    assert redacted.trajectory == (Turn("assistant", MARKER, (ToolCall("1", "f", MARKER),)),)
    assert (redacted.output, redacted.ended) == (MARKER, "max_turns")
    assert redacted.files == {"a": MARKER.encode(), "b": b"\xffmax_turns"}


def test_a_short_value_is_left_alone() -> None:
    redactor = Redactor(["none", "dummy"])
    assert redactor.redact("none of the dummy values") == "none of the dummy values"


def test_without_credentials_values_are_handed_back_as_they_are() -> None:
    value = {"a": (1, 2)}
    assert Redactor().redact_value(value) is value


def test_case_o_p1_a_credential_across_the_cut_leaves_nothing_behind() -> None:
    redactor = Redactor([KEY])
    for before in range(3940, 4010):
        text = "x" * before + KEY + "y" * 100
        clipped = redactor.clip(text, 4000)
        assert len(clipped) <= 4000
        assert "sk-" not in clipped
        assert clipped.replace(MARKER, "").strip("xy") == ""
        assert redactor.redact(text).startswith(clipped)


@pytest.mark.parametrize("length", range(40))
def test_a_cut_never_falls_inside_a_marker(length: int) -> None:
    redactor = Redactor(["secret-value"])
    text = "ab secret-value secret-valuesecret-value"
    clipped = redactor.clip(text, length)
    assert len(clipped) <= length
    assert "[" not in clipped.replace(MARKER, "")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 Unauthorized: Authorization: Bearer abc123def456ghi789", "abc123def456ghi789"),
        ('headers {"Authorization": "Bearer abc123def456"}', "abc123def456"),
        ("authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("the header was Bearer abc123def456.", "abc123def456"),
        ("Incorrect API key provided: sk-proj-abcdefghijklmnop", "sk-proj-abcdefghijklmnop"),
        ("x-api-key: abcdef", "abcdef"),
        ("GET https://h.example/v1?api_key=abcdef&x=1", "abcdef"),
        ("proxy http://user:hunter22@proxy.example:8080 refused", "hunter22"),
        ("password: hunter22", "hunter22"),
    ],
)
def test_case_o_p2_diagnostics_show_no_secret(text: str, secret: str) -> None:
    shown = redact_diagnostics(text)
    assert secret not in shown
    assert MARKER in shown


def test_ordinary_error_texts_are_not_changed() -> None:
    for text in (
        "429 Too Many Requests: token limit of 8000 tokens per minute",
        "the model said: password protection is on; the bearer of this letter may pass",
        "connect to http://127.0.0.1:8000/v1 failed: [Errno 111]",
    ):
        assert redact_diagnostics(text) == text
