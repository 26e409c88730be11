"""What went wrong with a call, told apart once: passing, permanent, rejected, too long, refused.

No message holds a key: of a rejected login the endpoint's own words are left out, since some repeat parts of it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from skillopt_kernel.errors import (
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.store.patterns import clipped
from skillopt_kernel.store.redaction import Redactor

from skillopt_lib_chat.options import ChatOptions, plain_address

_PASSING_STATUS = frozenset({408, 409, 425, 429})
_OVERLOADED_STATUS = frozenset({429, 503, 504, 529})
_PERMANENT_STATUS = frozenset({401, 403, 404, 405})
"""Of the key, the model or the address. Other statuses below 500 may concern the one request only."""
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"})
_NO_MODEL = frozenset({"model_not_found", "deploymentnotfound"})
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|prompt is too long|input is too long|too many (input|prompt) tokens"
    r"|maximum.{0,20}(prompt|input) (length|tokens)",
    re.IGNORECASE | re.DOTALL,
)
_REFUSED_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "image_content_policy_violation"}
    | {"bio_policy", "misalignment_policy_violation"}
)
_API_NAMES = {"chat_completions": "Chat Completions", "responses": "Responses"}
_STATUS_OF_CODE = {"rate_limit_exceeded": 429, "invalid_prompt": 400, "data_residency_mismatch": 403}
"""Codes of errors inside an answer of status 200 -> the HTTP status that means the same."""
LONGEST_DETAIL = 300
"""Characters of the endpoint's own words that a message quotes."""


def failure(status: int, body: str, headers: Mapping[str, str], options: ChatOptions) -> ModelError:
    """The error for an answer of another HTTP status than success, or with an error in place of a completion."""
    codes, message = _read_error(body)
    detail = _quote(message, options)
    where = f"{options.address} (HTTP status {status})"
    if status not in (401, 403) and (status == 413 or codes & _TOO_LONG_CODES or _is_too_long(status, message)):
        return ContextTooLong(
            f"the request does not fit the context of {options.model!r} at {where}{detail}. If it is the reply's limit "
            f"that does not fit, set a smaller one in {options.setting('max_tokens')}."
        )
    if status < 500 and codes & _REFUSED_CODES:
        return RefusedError(f"{where} refused the request by its content policy{detail}.")
    if status == 402 or (status in (403, 429) and codes & _NO_QUOTA):
        return PermanentError(
            f"the account at {where} has no credit or quota left{detail}. Add credit, or set another account's key in "
            f"{options.setting('api_key')}."
        )
    if status < 400:
        elsewhere = clipped(plain_address(headers.get("location", "")) or "another address", LONGEST_DETAIL)
        return PermanentError(
            f"{where} sends calls on to {elsewhere}, and no other address than the one that is set gets the key. Check "
            f"{options.setting('base_url')}."
        )
    if status in _PASSING_STATUS or status >= 500:
        return PassingError(
            f"{where} could not answer{detail}", retry_after(headers), overloaded=status in _OVERLOADED_STATUS
        )
    if codes & _NO_MODEL:
        status = 404  # that is what some endpoints mean by 400
    kind = PermanentError if status in _PERMANENT_STATUS else RejectedRequest
    return kind(_cure(status, where, detail, message, options))


def _is_too_long(status: int, message: str) -> bool:
    # A rate limit may speak of contexts, too, and passes.
    return status != 429 and bool(_TOO_LONG.search(message))


def _cure(status: int, where: str, detail: str, message: str, options: ChatOptions) -> str:
    if status in (401, 403) and options.token is not None:
        return f"{where} rejected the token{detail if status == 403 else ''}. {options.sign_in}"
    if status == 401:
        given = "was rejected" if options.api_key else "is missing"
        return f"the key for {where} {given}. Set a valid one in {options.setting('api_key')}."
    if status == 403:
        return (
            f"the key for {where} is not permitted to use {options.model!r}{detail}. Name a model that it may use in "
            f"`model.{options.role}`, or set another key in {options.setting('api_key')}."
        )
    if status in (404, 405):
        api = _API_NAMES[options.api]
        return (
            f"{where} does not know the model {options.model!r} or has no {api} there{detail}. Check "
            f"`model.{options.role}` and {options.setting('base_url')}."
        )
    if "max_completion_tokens" in message or "'max_tokens'" in message:
        return (
            f"{where} rejected the request{detail}. If it wants the token limit under another name or smaller, set "
            f"{options.setting('token_limit_field')} or {options.setting('max_tokens')}."
        )
    if "temperature" in message:
        return f"{where} rejected the request{detail}. Change or leave out {options.setting('temperature')}."
    return (
        f"{where} rejected the request as invalid{detail}. Check that `model.{options.role}` and "
        f"{options.setting('base_url')} belong together and that the model takes such requests."
    )


def malformed(content_type: str, reason: str, options: ChatOptions) -> PassingError:
    """The error for an answer of status 200 that is no completion."""
    kind = f" (content type {content_type.split(';')[0].strip()!r})" if content_type else ""
    error = PassingError(
        f"{options.address} answered with something else than a chat completion{kind}: {reason}. If it always does, "
        f"check {options.setting('base_url')}."
    )
    error.charged = True
    return error


def error_inside(answer: Any, options: ChatOptions) -> ModelError | None:
    """The error that an answer of status 200 holds in place of a reply; `None` when it holds none."""
    if not isinstance(answer, Mapping) or answer.get("choices"):
        return None
    if answer.get("output") and answer.get("status") != "failed":
        return None
    error, told = answer.get("error"), answer.get("base_resp")
    if not error and isinstance(told, Mapping) and told.get("status_code"):
        code = told["status_code"]
        status = options.status_of_code.get(code, 502) if isinstance(code, int) else 502
        error = {"message": f"{told.get('status_msg') or 'no reason told'} ({code})"}
        if status == 451:
            error["code"] = "content_filter"
    elif error:
        status = _status_of(error)
    else:
        return None
    return failure(status, json.dumps({"error": error}), {}, options)


def _status_of(error: Any) -> int:
    """The HTTP status that an error inside an answer names or means; 502 when it does neither."""
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, int):
        return code if 400 <= code < 600 else 502
    if isinstance(code, str) and ("image" in code or "policy" in code):  # of the one request
        return 400
    return _STATUS_OF_CODE.get(str(code), 502)


def _read_error(body: str) -> tuple[frozenset[str], str]:
    """The codes (code, type, inner code) and the message of an error's body, whatever its form."""
    try:
        error: Any = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset(), "" if body.lstrip().startswith("<") else body.strip()
    if isinstance(error, Mapping):
        error = error.get("error", error)
    if not isinstance(error, Mapping):
        return frozenset(), error if isinstance(error, str) else ""
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, Mapping) else None]
    message = next((error[name] for name in ("message", "detail", "error") if error.get(name)), "")
    return frozenset(str(code).lower() for code in codes if code), message if isinstance(message, str) else json.dumps(
        message
    )


def _quote(message: str, options: ChatOptions) -> str:
    text = " ".join(message.split())
    # Before it is clipped: half a key would not be found.
    shown = clipped(Redactor([options.api_key or ""]).diagnostics(text), LONGEST_DETAIL)
    return f": {shown.rstrip('.')}" if text else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
