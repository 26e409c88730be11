"""The Responses API on the wire: canonical requests to JSON bodies, JSON bodies to canonical replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Finish, ImagePart, Message
from skillopt_kernel.records import ToolCall

from skillopt_lib_chat.options import ChatOptions
from skillopt_lib_chat.wire import CHOICES, data_url, read_usage, sampling, split_reasoning, tool_call

_CUT_OFF: dict[str, Finish] = {"max_output_tokens": "length", "content_filter": "filtered"}
"""Why a response is incomplete -> how the reply ended."""


# Requests --------------------------------------------------------------------------------------------------


def request_body(request: ChatRequest, options: ChatOptions) -> dict[str, Any]:
    """The JSON body of a request. The endpoint keeps nothing of it: every request holds the whole conversation."""
    body: dict[str, Any] = {
        "model": options.model,
        "input": [item for message in request.messages if message.role != "system" for item in _items(message)],
        "store": False,
    }
    instructions = "\n\n".join(message.text for message in request.messages if message.role == "system")
    if instructions:
        body["instructions"] = instructions
    limit = options.limit(request.max_tokens)
    if limit is not None:
        body["max_output_tokens"] = limit
    body |= sampling(request, options)
    effort = options.effort(request.effort)
    if effort is not None:
        body["reasoning"] = {"effort": effort}
    if request.schema is not None and options.structured_output:
        schema = {"type": "json_schema", "name": "reply", "schema": dict(request.schema), "strict": False}
        body["text"] = {"format": schema}
    if request.tools:
        # Strict tools, the protocol's default, would refuse every schema with an optional property.
        body["tools"] = [
            {"type": "function", "name": tool.name, "description": tool.description, "strict": False,
             "parameters": dict(tool.parameters)}
            for tool in request.tools
        ]  # fmt: skip
        if request.tool_choice in CHOICES:
            body["tool_choice"] = request.tool_choice
        elif request.tool_choice != "auto":
            body["tool_choice"] = {"type": "function", "name": request.tool_choice}
    return body


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """The input items of one message: its content, and each tool call or result as an item of its own."""
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": _content(message)}
        return
    if message.content or not message.tool_calls:
        yield {"role": message.role, "content": _content(message)}
    for call in message.tool_calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str) or message.role == "assistant":
        return message.text
    return [
        {"type": "input_image", "image_url": data_url(part), "detail": part.detail}
        if isinstance(part, ImagePart)
        else {"type": "input_text", "text": part.text}
        for part in message.content
    ]


# Replies ---------------------------------------------------------------------------------------------------


def read_reply(response: Any, request: ChatRequest) -> ChatReply:
    """The reply in a response's JSON. Raises `PassingError` when it is none, or was broken off."""
    output = response.get("output") if isinstance(response, Mapping) else None
    if not isinstance(output, list):
        raise PassingError("the endpoint's answer is no response: it has no output")
    status = response.get("status", "completed")
    if status not in ("completed", "incomplete"):
        raise PassingError(f"the endpoint broke the reply off (status {status!r})")
    texts, refusals, thoughts = [], [], []
    calls: list[ToolCall] = []
    for item in output:
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == "message":
            texts += _parts(item.get("content"), "output_text", "text")
            refusals += _parts(item.get("content"), "refusal", "refusal")
        elif item.get("type") == "reasoning":
            thoughts += _parts(item.get("content"), "reasoning_text", "text")
            thoughts += _parts(item.get("summary"), "summary_text", "text")
        elif item.get("type") == "function_call" and item.get("name"):
            calls.append(tool_call(item.get("call_id"), item, request, len(calls)))
    text, inline = split_reasoning("".join(texts))
    return ChatReply(
        text=text or "".join(refusals),
        tool_calls=tuple(calls),
        finish=_finish(response, bool(text.strip()), bool(refusals), bool(calls)),
        usage=read_usage(response.get("usage")),
        reasoning="\n".join(part for part in (*thoughts, inline) if part),
    )


def _parts(parts: Any, kind: str, name: str) -> list[str]:
    found = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    return [part[name] for part in found if part.get("type") == kind and isinstance(part.get(name), str)]


def _finish(response: Mapping[str, Any], text: bool, refused: bool, calls: bool) -> Finish:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return _CUT_OFF.get(str(reason), "length")
    if refused:
        return "filtered"
    if calls:
        return "tool_calls"
    return "stop" if text else "empty"
