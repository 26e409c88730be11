"""The protocols of the loopback server: which path speaks which, and how a scripted reply looks in each."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from skillopt_testkit import anthropic_messages, responses_events

_PATHS = re.compile(
    r"(?:(?:/openai)?/v1)?/(?P<plain>chat/completions|responses|messages|models)"
    r"|/openai/(?:deployments/[^/]+/(?P<deployed>chat/completions)|(?P<azure>responses|models))"
)


@frozen
class Reply:
    """What the server answers one request with.

    text, tool_calls, finish_reason   of the one choice, as Chat Completions have them, whatever is spoken
    usage     the `usage` object of Chat Completions, `None` leaves it out
    status    HTTP status; from 400 on, `text` is the error's message
    headers   further headers, e.g. {"Retry-After": "2"}
    delay     seconds to wait before answering
    drop      close the connection without an answer
    body      the whole body as it stands, instead of all the above
    """

    text: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = field(
        factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    )
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    delay: float = 0.0
    drop: bool = False
    body: bytes | None = None

    def encoded(self, model: str, protocol: str = "chat/completions", stream: bool = False) -> bytes:
        """The body of the HTTP response; `stream`: as server-sent events, where the protocol has them here."""
        if self.body is not None:
            return self.body
        if protocol == "messages":
            if self.status >= 400:
                return json.dumps(anthropic_messages.error(self)).encode()
            told = anthropic_messages.message(self, model)
            return anthropic_messages.events(told) if stream else json.dumps(told).encode()
        if self.status >= 400:
            error = {"message": self.text or f"scripted status {self.status}", "type": "scripted"}
            return json.dumps({"error": error}).encode()
        if protocol == "responses":
            made = response(self, model)
            return responses_events.events(made) if stream else json.dumps(made).encode()
        return json.dumps(chat_completion(self, model)).encode()


def protocol_of(path: str) -> str | None:
    """What is spoken at a path ("chat/completions", "responses", "messages", "models"); `None`: there is nothing.

    As at Azure, a path below `/openai` that names no version needs `api-version` in its query.
    """
    plain, _, query = path.partition("?")
    found = _PATHS.fullmatch(plain)
    if found is None or (found["plain"] is None and "api-version=" not in query):
        return None
    return found["plain"] or found["deployed"] or found["azure"]


def chat_completion(reply: Reply, model: str) -> dict[str, Any]:
    """The reply as a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [dict(call) for call in reply.tool_calls]
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    completion: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if reply.usage is not None:
        completion["usage"] = dict(reply.usage)
    return completion


# Responses -------------------------------------------------------------------------------------------------

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def response(reply: Reply, model: str) -> dict[str, Any]:
    """The reply as a response."""
    output: list[dict[str, Any]] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for number, call in enumerate(reply.tool_calls):
        function = call["function"]
        output.append({"type": "function_call", "id": f"fc_{number}", "call_id": call["id"], "name": function["name"],
                       "arguments": function["arguments"], "status": "completed"})  # fmt: skip
    incomplete = _INCOMPLETE.get(reply.finish_reason or "")
    made: dict[str, Any] = {
        "id": "resp_scripted",
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "output": output,
    }
    if reply.usage is not None:
        made["usage"] = {_renamed(name): value for name, value in reply.usage.items()}
    return made


def _renamed(name: str) -> str:
    for old, new in _USAGE.items():
        name = name.replace(old, new)
    return name


def as_chat(body: Mapping[str, Any], protocol: str = "responses") -> Mapping[str, Any]:
    """A request as one of Chat Completions, so that one script can answer every protocol."""
    if protocol == "chat/completions":
        return body
    if protocol == "messages":
        return anthropic_messages.as_chat(body)
    messages = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    asked = body.get("input", [])
    items = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(filter(_is_said, asked))
    tools = [{"type": "function", "function": tool} for tool in body.get("tools", ())]
    return {**body, "messages": [*messages, *map(_as_message, items)], "tools": tools}


def _is_said(item: Mapping[str, Any]) -> bool:
    """Of what a client sends, thoughts and the like stand for no message."""
    return item.get("type", "message") in ("message", "function_call", "function_call_output")


def _as_message(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = {"id": item["call_id"], "type": "function",
                "function": {"name": item["name"], "arguments": item["arguments"]}}  # fmt: skip
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        output = item["output"]
        content = output if isinstance(output, str) else list(_as_parts(output))
        return {"role": "tool", "tool_call_id": item["call_id"], "content": content}
    content = item["content"]
    return {"role": item["role"], "content": content if isinstance(content, str) else list(_as_parts(content))}


def _as_parts(parts: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if part["type"] == "input_image":
            yield {"type": "image_url", "image_url": {"url": part["image_url"]}}
        else:
            yield {"type": "text", "text": part["text"]}
