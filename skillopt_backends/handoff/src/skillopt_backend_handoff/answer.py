"""An answer's file as the reply of a model, or what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

from skillopt_kernel.models.requests import ChatReply, Finish
from skillopt_kernel.records import ToolCall, Usage

FINISHES = ("stop", "length", "filtered", "empty", "tool_calls")
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usd")
_OPENS = {"{": "}", "[": "]", "```": "```"}


class Unusable(Exception):
    """An answer that cannot be taken; the text goes on after the file's name."""


def text_reply(data: bytes) -> ChatReply:
    """The reply in a text file: all of it but one line break at its end. Raises `Unusable`."""
    text = _decoded(data)
    shown = text.strip()
    for opening, closing in _OPENS.items():
        if shown.startswith(opening) and (not shown.endswith(closing) or shown == opening):
            raise Unusable(
                f"looks half-written: it begins with {opening} and does not end with {closing}. Complete it; if it is "
                f'meant so, write {{"text": ...}} into a file that ends with .answer.json instead'
            )
    return ChatReply(text.removesuffix("\n").removesuffix("\r"), usage=Usage(calls=1))


def structured_reply(data: bytes) -> ChatReply:
    """The reply in a JSON file: `text`, `tool_calls`, `finish` and `usage`, none of which must be there if `finish` is.

    Raises `Unusable`.
    """
    try:
        value = json.loads(_decoded(data))
    except (ValueError, RecursionError) as error:
        raise Unusable(f"is no JSON ({error}); it may be half-written. Complete it") from None
    if not isinstance(value, dict):
        raise Unusable('must be a JSON object such as {"text": "..."}')
    unknown = set(value) - {"text", "tool_calls", "finish", "usage"}
    if unknown:
        raise Unusable(f"has the key {sorted(unknown)[0]!r}; it may have text, tool_calls, finish and usage")
    text, calls = value.get("text", ""), _tool_calls(value.get("tool_calls", []))
    if not isinstance(text, str):
        raise Unusable('has a "text" that is no text')
    finish: Finish = value.get("finish", "tool_calls" if calls else "stop" if text else "empty")
    if finish not in FINISHES:
        raise Unusable(f'has the "finish" {finish!r}; it may be one of {", ".join(FINISHES)}')
    if not text and not calls and "finish" not in value:
        raise Unusable("has neither text nor tool_calls; give one of them, or say why with finish")
    return ChatReply(text, calls, finish, _usage(value.get("usage", {})))


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable(f"is not UTF-8 at byte {error.start}; save it as UTF-8, whole") from None
    if not text.strip():
        raise Unusable("is empty; write the reply into it")
    return text


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    if not isinstance(value, list):
        raise Unusable('has "tool_calls" that are no list')
    calls = []
    for number, call in enumerate(value):
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise Unusable('has a tool call without a "name"')
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append(ToolCall(str(call.get("id") or f"call_{number + 1}"), call["name"], text))
    return tuple(calls)


def _usage(value: Any) -> Usage:
    if not isinstance(value, dict) or not set(value) <= set(COUNTS):
        raise Unusable(f'has a "usage" with something else than {", ".join(COUNTS)}')
    for name, count in value.items():
        whole = isinstance(count, int) or (name == "usd" and isinstance(count, float))
        if isinstance(count, bool) or not whole or count < 0:
            raise Unusable(f'has a "usage" whose {name} is no number of 0 or more')
    return Usage(calls=1, **value)
