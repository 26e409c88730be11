"""Anthropic Messages on the loopback server: requests read as Chat Completions have them, scripted replies written.

A reply is sent as one JSON document, or as server-sent events where the request says `stream`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_STOP = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


def message(reply: Any, model: str) -> dict[str, Any]:
    """A `Reply` as a message. Cached tokens of its usage are told beside the input, as Anthropic does."""
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.tool_calls:
        function = call["function"]
        made = {"id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        content.append({"type": "tool_use", **made})
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    told = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": _STOP.get(finish, "end_turn"), "stop_sequence": None}  # fmt: skip
    return told | {"usage": _usage(reply.usage or {})}


def _usage(told: Mapping[str, Any]) -> dict[str, Any]:
    prompt, cached = (told.get("prompt_tokens", 0), told.get("prompt_tokens_details", {}).get("cached_tokens", 0))
    usage = {"input_tokens": prompt - cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}
    thought = told.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
    details = {"output_tokens_details": {"thinking_tokens": thought}} if thought else {}
    return usage | {"output_tokens": told.get("completion_tokens", 0)} | details


def error(reply: Any) -> dict[str, Any]:
    """A `Reply` of a status from 400 on."""
    kind = _ERRORS.get(reply.status, "api_error" if reply.status >= 500 else "invalid_request_error")
    text = reply.text or f"scripted status {reply.status}"
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_scripted"}


def events(told: Mapping[str, Any]) -> bytes:
    """A message as server-sent events."""
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in _events(told))


def _events(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**told["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**told, "content": [], "stop_reason": None, "usage": begun}}
    for index, block in enumerate(told["content"]):
        text = block["type"] == "text"
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        partial = {"type": "text_delta", "text": block["text"]} if text else {
            "type": "input_json_delta", "partial_json": json.dumps(block["input"])}  # fmt: skip
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": partial}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": told["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": told["usage"]}
    yield {"type": "message_stop"}


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request as one of Chat Completions, so that one script can answer both.

    Each text of a user's message becomes a message of its own, unless there are images between them.
    """
    messages = [{"role": "system", "content": _text(body["system"])}] if body.get("system") else []
    for each in body.get("messages", ()):
        messages += _as_messages(each["role"], each["content"])
    tools = [{"type": "function", "function": {
        "name": tool["name"], "description": tool.get("description", ""), "parameters": tool.get("input_schema", {}),
    }} for tool in body.get("tools") or ()]  # fmt: skip
    return {**body, "messages": messages, "tools": tools}


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _as_messages(role: str, content: str | Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in parts:
        if part["type"] == "tool_result":
            told = _text(part.get("content", ""))
            yield {"role": "tool", "tool_call_id": part["tool_use_id"], "content": told}
    calls = [
        {"id": part["id"], "type": "function",
         "function": {"name": part["name"], "arguments": json.dumps(part["input"])}}
        for part in parts if part["type"] == "tool_use"
    ]  # fmt: skip
    said = [_as_part(part) for part in parts if part["type"] in ("text", "image")]
    if any(part["type"] != "text" for part in said):
        yield {"role": role, "content": said}
    elif role == "user":
        yield from ({"role": role, "content": part["text"]} for part in said)
    else:
        yield {"role": role, "content": _text(said), **({"tool_calls": calls} if calls else {})}


def _as_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    source = part["source"]
    return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}
