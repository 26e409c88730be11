"""A chat request as one prompt for a program, and the program's answer as a reply.

A conversation of several messages becomes a transcript; tools become a list from which the model asks for calls in
JSON, since the program must run none of them itself; images become files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.requests import ChatReply, ChatRequest, ImagePart, Message, Part, TextPart
from skillopt_kernel.records import ToolCall, Usage

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

REPLY_WITH_CALLS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["content", "tool_calls"],
    "additionalProperties": False,
}
"""The schema of a reply where there are tools; `arguments` is JSON as text."""

TOOLS = """\
## Tools

You cannot run these tools yourself; you ask for a call and get its result in the next message. Reply with one JSON \
object: `content` is what you say (it may be empty), `tool_calls` the calls you ask for, each with the tool's `name` \
and its `arguments` as a JSON text. {choice}

{tools}"""

_CHOICES = {"auto": "Ask for calls only where they help.", "required": "Ask for at least one call.",
            "none": "Ask for no call: `tool_calls` is empty."}  # fmt: skip


@frozen
class Conversation:
    """What a program is told: a system prompt ("" if there is none), a prompt, images by file name, and the schema
    that its answer must follow, where it can be held to one."""

    system: str
    prompt: str
    images: Mapping[str, bytes] = field(factory=dict)
    schema: Mapping[str, Any] | None = None


def conversation_of(request: ChatRequest) -> Conversation:
    """The request for a program that takes one prompt."""
    images: dict[str, bytes] = {}
    system = [message.text for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    if len(others) == 1 and others[0].role == "user":
        prompt = _content(others[0], images)
    else:
        turns = [f"## {_heading(message)}\n\n{_content(message, images)}{_calls(message)}" for message in others]
        prompt = "\n\n".join(["This is a conversation. Give the assistant's next message.", *turns])
    if not request.tools:
        return Conversation("\n\n".join(system), prompt, images, request.schema if is_strict(request.schema) else None)
    tools = json.dumps(
        [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in request.tools],
        ensure_ascii=False,
        indent=1,
    )
    choice = _CHOICES.get(request.tool_choice, f"Ask for a call of `{request.tool_choice}`.")
    system.append(TOOLS.format(choice=choice, tools=tools))
    return Conversation("\n\n".join(system), prompt, images, REPLY_WITH_CALLS)


def reply_of(text: str, request: ChatRequest, usage: Usage) -> ChatReply:
    """The reply in a program's answer. Raises `PassingError` where tools were offered and it is not in their form."""
    if not request.tools:
        return ChatReply(text, finish="stop" if text.strip() else "empty", usage=usage)
    try:
        told = json.loads(text)
        content, asked = told["content"], told["tool_calls"]
        made = sum(len(message.tool_calls) for message in request.messages)
        calls = tuple(
            ToolCall(f"call_{made + number}", call["name"], _arguments(call["arguments"]))
            for number, call in enumerate(asked)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        error = PassingError("the model's reply is not the JSON object that a reply with tools must be")
        error.usage = usage
        raise error from None
    known = {tool.name for tool in request.tools}
    calls = tuple(call for call in calls if call.name in known)
    if not calls and request.tool_choice not in ("auto", "none"):
        error = PassingError(f"the model asked for no tool, and it had to ({request.tool_choice})")
        error.usage = usage
        raise error
    finish = "tool_calls" if calls else "stop" if str(content).strip() else "empty"
    return ChatReply(str(content), calls, finish, usage)  # type: ignore[arg-type]


def is_strict(schema: Mapping[str, Any] | None) -> bool:
    """Whether a provider takes a schema as strict: each object lists all its properties and allows no others."""
    if schema is None:
        return False
    parts = [schema, *_parts(schema)]
    objects = [part for part in parts if part.get("type") == "object" or "properties" in part]
    return bool(objects) and all(
        part.get("additionalProperties") is False and set(part.get("required", ())) == set(part.get("properties", {}))
        for part in objects
    )


def _parts(value: Any) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            found.append(item)
        found += _parts(item)
    return found


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _heading(message: Message) -> str:
    if message.role == "tool":
        return f"Result of the call {message.tool_call_id}"
    return message.role.capitalize()


def _calls(message: Message) -> str:
    asked = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return f"\n\nAsked for: {json.dumps(asked, ensure_ascii=False)}" if asked else ""


def _content(message: Message, images: dict[str, bytes]) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(_shown(part, images) for part in message.content)


def _shown(part: Part, images: dict[str, bytes]) -> str:
    if isinstance(part, TextPart):
        return part.text
    assert isinstance(part, ImagePart)
    name = f"image-{len(images) + 1}.{_ENDINGS.get(part.media_type, 'bin')}"
    images[name] = part.data
    return f"[{name}]"
