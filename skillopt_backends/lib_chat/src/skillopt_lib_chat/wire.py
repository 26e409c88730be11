"""Chat Completions on the wire: canonical requests to JSON bodies, JSON bodies to canonical replies."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Finish, ImagePart, Message, Part
from skillopt_kernel.records import ToolCall, Usage

from skillopt_lib_chat.options import ChatOptions

_OPENING_TAG = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</(think|thinking|reasoning)>", re.IGNORECASE)

_FINISH: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
CHOICES = ("none", "required")
"""What `tool_choice` may say beside "auto" and a tool's name."""

_BROKEN_OFF = ("error", "insufficient_system_resource", "abort")
"""Finish reasons by which servers say that they could not go on; another try may."""


# Requests --------------------------------------------------------------------------------------------------


def request_body(request: ChatRequest, options: ChatOptions) -> dict[str, Any]:
    """The JSON body of a request. What is not set is left out, so that the endpoint's own defaults hold."""
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [_message(message) for message in request.messages],
    }
    limit = options.limit(request.max_tokens)
    if limit is not None:
        body[options.token_limit_field] = limit
    body |= sampling(request, options)
    if request.seed is not None and options.send_seed:
        body["seed"] = request.seed
    effort = options.effort(request.effort)
    if effort is not None:
        body["reasoning_effort"] = effort
    if request.schema is not None and options.structured_output:
        schema = {"name": "reply", "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in request.tools
        ]
        if request.tool_choice in CHOICES:
            body["tool_choice"] = request.tool_choice
        elif request.tool_choice != "auto":  # which is what the protocol does unasked, and not every endpoint knows
            body["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
    return body


def sampling(request: ChatRequest, options: ChatOptions) -> dict[str, Any]:
    """The temperature as a field of the body: the call's own, else the setting's; none where the model takes none."""
    temperature = request.temperature if request.temperature is not None else options.temperature
    return {} if temperature is None or not options.send_temperature else {"temperature": temperature}


def _message(message: Message) -> dict[str, Any]:
    content: Any = message.content
    if not isinstance(content, str):
        content = [_part(part) for part in content]
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        wire["content"] = content or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        image: dict[str, Any] = {"url": data_url(part)}
        if part.detail != "auto":
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    return {"type": "text", "text": part.text}


def data_url(image: ImagePart) -> str:
    """The image as a `data:` URL."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"


# Replies ---------------------------------------------------------------------------------------------------


def read_reply(completion: Any, request: ChatRequest) -> ChatReply:
    """The reply in a completion's JSON. Raises `PassingError` when it is none."""
    choice = _first_choice(completion)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise PassingError("the endpoint's completion holds no message")
    reason = choice.get("finish_reason")
    if reason in _BROKEN_OFF:
        raise PassingError(f"the endpoint broke the reply off (finish_reason {reason!r})")
    text, reasoning = _content(message)
    calls = _tool_calls(message.get("tool_calls"), request)
    return ChatReply(
        text=text,
        tool_calls=calls,
        finish=_finish(reason, message, text, calls),
        usage=read_usage(completion.get("usage")),
        reasoning=reasoning,
    )


def _first_choice(completion: Any) -> Mapping[str, Any]:
    choices = completion.get("choices") if isinstance(completion, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise PassingError("the endpoint's answer is no chat completion: it has no choices")
    return choices[0]


def _content(message: Mapping[str, Any]) -> tuple[str, str]:
    """The text and the reasoning of a message, wherever the server puts them."""
    content = message.get("content")
    thought = next((message[name] for name in ("reasoning_content", "reasoning") if _is_text(message.get(name))), "")
    thought = thought or _texts(message.get("reasoning_details"))
    if isinstance(content, list):
        text = _texts(content)
    else:
        text = content if isinstance(content, str) else ""
    text, inline = split_reasoning(text)
    if not text and _is_text(message.get("refusal")):
        text = message["refusal"]
    return text, "\n".join(part for part in (thought, inline) if part)


def _texts(parts: Any) -> str:
    """The texts of a list of parts, whatever else is in it."""
    found = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    return "".join(part["text"] for part in found if _is_text(part.get("text")))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def split_reasoning(text: str) -> tuple[str, str]:
    """The text without reasoning at its beginning, and that reasoning."""
    # Some servers hand reasoning on inside the text: <think>...</think>answer, without the first tag where the
    # prompt's template ends with it, without the second where the reply was cut off.
    opening = _OPENING_TAG.match(text)
    closing = _CLOSING_TAG.search(text)
    if opening is None and closing is None:
        return text, ""
    start = opening.end() if opening else 0
    if closing is None:
        return "", text[start:].strip()
    return text[closing.end() :].lstrip(), text[start : closing.start()].strip()


def _tool_calls(raw: Any, request: ChatRequest) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for item in raw if isinstance(raw, Sequence) and not isinstance(raw, str) else ():
        function = item.get("function") if isinstance(item, Mapping) else None
        if isinstance(function, Mapping) and _is_text(function.get("name")):
            calls.append(tool_call(item.get("id"), function, request, len(calls)))
    return tuple(calls)


def tool_call(call_id: Any, function: Mapping[str, Any], request: ChatRequest, before: int) -> ToolCall:
    """A call of a tool, with the endpoint's id; `before`: how many calls stand before it in the reply.

    Where the endpoint gives no id: a number that occurs once in the conversation, the same on every replay.
    """
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
    made = sum(len(message.tool_calls) for message in request.messages)
    return ToolCall(
        id=call_id if _is_text(call_id) else f"call_{made + before}", name=function["name"], arguments=arguments
    )


def _finish(reason: Any, message: Mapping[str, Any], text: str, calls: tuple[ToolCall, ...]) -> Finish:
    finish = _FINISH.get(reason, "stop") if isinstance(reason, str) else "stop"
    if finish in ("length", "filtered"):
        return finish
    if _is_text(message.get("refusal")):
        return "filtered"
    if calls:
        return "tool_calls"
    return "stop" if text.strip() else "empty"


def read_usage(raw: Any) -> Usage:
    """Tokens as the endpoint told them, in either protocol's words; what it did not tell is `None`: unknown."""
    usage: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    prompt = _count(usage.get("prompt_tokens"), usage.get("input_tokens"))
    completion = _count(usage.get("completion_tokens"), usage.get("output_tokens"))
    of_prompt = _detail(usage, "prompt_tokens_details", "input_tokens_details")
    of_completion = _detail(usage, "completion_tokens_details", "output_tokens_details")
    cost = usage.get("cost")
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_count(of_prompt.get("cached_tokens"), usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=_count(of_completion.get("reasoning_tokens")),
        usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None,
        unknown_calls=int(prompt is None and completion is None),
    )


def _detail(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((usage[name] for name in names if isinstance(usage.get(name), Mapping)), {})


def _count(*values: Any) -> int | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
