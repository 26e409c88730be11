"""Requests and replies between the kernel and a backend, in one canonical form for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from skillopt_kernel.records import ToolCall, Trajectory, Usage

Finish = Literal["stop", "length", "filtered", "empty", "tool_calls"]


def whole_characters(text: str) -> str:
    """The text with each half of a surrogate pair (a reply cut inside an emoji) replaced: UTF-8 has no such half."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@frozen
class TextPart:
    text: str = field(converter=whole_characters)


@frozen
class ImagePart:
    """An image as bytes with its media type (`image/png`); `detail` as the OpenAI protocol names it."""

    data: bytes
    media_type: str
    detail: Literal["auto", "low", "high"] = "auto"


Part = TextPart | ImagePart


def _whole_content(content: str | tuple[Part, ...]) -> str | tuple[Part, ...]:
    return whole_characters(content) if isinstance(content, str) else content


@frozen
class Message:
    """One message. `content` is text or a sequence of parts; only `tool` messages have a `tool_call_id`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[Part, ...] = field(default="", converter=_whole_content)
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message; images are left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


@frozen
class Tool:
    """A tool that the model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@frozen
class ChatRequest:
    """One call of a chat model.

    tool_choice  "auto", "none", "required" or a tool's name; unused without tools
    schema       JSON schema that the reply's text must follow; a backend without the feature ignores it
    max_tokens   limit of the reply, `None`: the backend's own setting
    effort       reasoning effort, `None`: off or the backend's own setting
    stage        rollout, selection, test, analyst, merge, ranking, judge, ...: what the call is for
    deadline     `time.monotonic()` at which the reply is of no more use; a backend's timeout follows it
    call         which call of its role in the run it is: the scope and number of the ledger's key; the same when a
                 resumed run asks again
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    effort: str | None = None
    temperature: float | None = None
    seed: int | None = None
    stage: str = ""
    deadline: float | None = None
    call: str = ""


@frozen
class ChatReply:
    """What came back. `finish`: `length` is cut off, `filtered` withheld, `empty` no text and no tool call."""

    text: str = field(converter=whole_characters)
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage = field(factory=Usage)
    reasoning: str = field(default="", converter=whole_characters)


@frozen
class AgentJob:
    """A job for an agent program.

    files    relative path -> bytes, or the path of a file to copy, laid into the fresh workspace
    collect  glob patterns of files to bring back
    edits    whether it may change files
    """

    prompt: str
    skill: str
    files: Mapping[str, bytes | Path] = field(factory=dict)
    collect: tuple[str, ...] = ()
    edits: bool = False
    stage: str = ""
    max_turns: int | None = None
    deadline: float | None = None


@frozen
class AgentResult:
    """What an agent program did. `isolated`: whether it could see nothing but its workspace and home."""

    message: str
    files: Mapping[str, bytes] = field(factory=dict)
    trajectory: Trajectory = ()
    usage: Usage = field(factory=Usage)
    isolated: bool = False
