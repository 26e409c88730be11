"""What endpoints answer when they do not answer, and what a user is told of it."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from skillopt_kernel.errors import (
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_chat.failures import LONGEST_DETAIL, failure, malformed, retry_after
from skillopt_lib_chat.options import ChatOptions

KEY = "s3cret-0123456789abcdef"
OPTIONS = ChatOptions(
    model="m", base_url="https://user:hidden@host/v1", role="target", prefix="openai_compatible_", api_key=KEY
)


def error(status: int, message: Any = "no", headers: dict[str, str] | None = None, **fields: Any) -> ModelError:
    return failure(status, json.dumps({"error": {"message": message, **fields}}), headers or {}, OPTIONS)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, PermanentError) for status in (401, 402, 403, 404, 405)),
        *((status, RejectedRequest) for status in (400, 406, 410, 415, 422)),
    ],
)
def test_what_no_further_try_mends(status: int, kind: type) -> None:
    """Of key, account, model or address it ends the run; a request that is invalid may be the only one."""
    found = error(status)
    assert type(found) is kind
    assert f"HTTP status {status}" in str(found)
    assert "https://host/v1" in str(found)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_passing(status: int) -> None:
    assert type(error(status)) is PassingError


@pytest.mark.parametrize(
    ("status", "message", "part"),
    [
        (401, "bad key", "TARGET_OPENAI_COMPATIBLE_API_KEY"),
        (401, "bad key", "`model.openai_compatible_api_key`"),
        (403, "no access", "`model.target`"),
        (404, "no such model", "OPENAI_COMPATIBLE_BASE_URL"),
        (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "_token_limit_field`"),
        (400, "temperature does not support 0.7 with this model", "`model.openai_compatible_temperature`"),
        (422, "bad request", "`model.target`"),
        (402, "Insufficient Balance", "Add credit"),
    ],
)
def test_the_cure_names_the_setting(status: int, message: str, part: str) -> None:
    text = str(error(status, message))
    assert part in text
    assert part in Redactor([KEY]).diagnostics(text), "what is shown to people still says it"


@pytest.mark.parametrize("code", ["model_not_found", "DeploymentNotFound"])
def test_an_unknown_model_is_permanent_whatever_the_status(code: str) -> None:
    found = error(400, "no such model", code=code)
    assert type(found) is PermanentError
    assert "does not know the model 'm'" in str(found)


def test_a_missing_key_is_told_from_a_wrong_one() -> None:
    assert "was rejected" in str(error(401))
    without = ChatOptions(model="m", base_url="http://h/v1", role="optimizer", prefix="p_")
    assert "is missing" in str(failure(401, "{}", {}, without))


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000.", None),
        (400, "too long", "context_length_exceeded"),
        (400, "the request exceeds the available context size, try increasing it", None),
        (500, "the request exceeds the available context size. try increasing the context size", None),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
        (400, "no", "exceed_context_size_error"),
        (413, "Request Entity Too Large", None),
        (422, "`inputs` must fit the context window", None),
    ],
)
def test_a_context_that_is_too_long(status: int, message: str, code: str | None) -> None:
    found = error(status, message, code=code)
    assert type(found) is ContextTooLong
    assert "OPENAI_COMPATIBLE_MAX_TOKENS" in str(found)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (504, "context deadline exceeded", PassingError),
        (429, "too many input tokens for the context window of this minute", PassingError),
        (401, "context length", PermanentError),
    ],
)
def test_what_only_sounds_like_a_long_context(status: int, message: str, kind: type) -> None:
    assert type(error(status, message)) is kind


def test_a_content_filter_refuses() -> None:
    assert type(error(400, "blocked", code="content_filter")) is RefusedError
    azure = error(400, "blocked", code="x", innererror={"code": "ResponsibleAIPolicyViolation"})
    assert type(azure) is RefusedError
    assert type(error(500, "blocked", code="content_filter")) is PassingError


@pytest.mark.parametrize("field", ["code", "type"])
def test_a_quota_that_is_used_up_does_not_pass(field: str) -> None:
    found = error(429, "You exceeded your current quota", {"retry-after": "5"}, **{field: "insufficient_quota"})
    assert type(found) is PermanentError
    assert "credit or quota" in str(found)


def test_no_message_holds_a_key() -> None:
    for status in (400, 401, 403, 404, 413, 422, 429, 500):
        long = "x" * (LONGEST_DETAIL - 10) + KEY
        for message in (f"Incorrect API key provided: {KEY}", f"key s3cret-0*****def ({status})", long):
            text = str(error(status, message))
            assert KEY[:12] not in text
            assert "hidden" not in text
            assert status != 401 or "s3cret-0" not in text, "of a rejected key not even a part is repeated"


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        ('{"error": "a text"}', "a text"),
        ('{"detail": "from a web framework"}', "from a web framework"),
        ('{"message": "at the top"}', "at the top"),
        ('{"error": {"message": {"nested": 1}}}', '{"nested": 1}'),
        ("plain words", "plain words"),
        ('"quoted words"', "quoted words"),
        ("<html><body>502 Bad Gateway</body></html>", None),
        ("", None),
        ("[" * 100_000, "[["),
        ('{"error": null}', None),
    ],
)
def test_errors_in_every_form(body: str, quoted: str | None) -> None:
    text = str(failure(500, body, {}, OPTIONS))
    assert quoted is None or quoted in text
    assert "html" not in text
    assert len(text) < LONGEST_DETAIL + 200


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
    found = error(429, headers=headers)
    assert isinstance(found, PassingError)
    assert found.retry_after == seconds


def test_a_date_to_wait_for() -> None:
    seconds = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert seconds is not None
    assert 55 < seconds <= 60
    assert retry_after({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0.0


def test_an_answer_that_is_no_completion() -> None:
    found = malformed("text/html; charset=utf-8", "it is not JSON", OPTIONS)
    assert type(found) is PassingError
    for part in ("'text/html'", "it is not JSON", "https://host/v1", "OPENAI_COMPATIBLE_BASE_URL"):
        assert part in str(found)
