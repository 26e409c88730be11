"""Reads a request as a real model would have to: from its text, and from nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from attrs import frozen
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message

SECTIONS = (
    "Current skill",
    "What was tried before",
    "Advice from earlier epochs",
    "Trajectories",
    "Patches",
    "Suggestions",
    "Candidate edits",
    "Previous skill",
    "Previous guidance",
    "Comparison",
    "Notes to consolidate",
)
"""Second-level headings of the kernel's messages. Others belong to what is quoted, a trajectory's prompt."""

_HEADING = re.compile(rf"## ({'|'.join(SECTIONS)})\b", re.IGNORECASE)
_FENCE = re.compile(r"(~{4,}|`{4,})")
_BUDGET = re.compile(r"\b(?:at most|budget(?: is| of|:)?)\s+\**(\d+)", re.IGNORECASE)
_TRAJECTORY = re.compile(r"^### Trajectory \d+: .*$", re.MULTILINE)
_CATEGORY = re.compile(r"^### (\w+) \(\d+\): .*$", re.MULTILINE)
_PAIR = re.compile(r"^#### Pair \d+: .*$", re.MULTILINE)
_CANDIDATE = re.compile(r"^\[(\d+)\] ?", re.MULTILINE)


@frozen
class Asked:
    """A request's text: its system and user parts, and the user part by section ("current skill", ...)."""

    stage: str
    system: str
    user: str
    sections: Mapping[str, str]

    @classmethod
    def of(cls, request: ChatRequest) -> Asked:
        system = "\n".join(message.text for message in request.messages if message.role == "system")
        user = "\n".join(message.text for message in request.messages if message.role == "user")
        return cls(request.stage, system, user, _sections(user))

    def section(self, name: str) -> str:
        return self.sections.get(name.casefold(), "")

    @property
    def skill(self) -> str:
        """The current skill, without the fence around it."""
        lines = self.section("Current skill").strip("\n").split("\n")
        fenced = len(lines) > 1 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1])
        return "\n".join(lines[1:-1] if fenced else lines)

    @property
    def tried(self) -> str:
        """What the request tells of earlier steps and epochs."""
        return f"{self.section('What was tried before')}\n{self.section('Advice from earlier epochs')}"

    @property
    def budget(self) -> int | None:
        """How many items the reply may hold; `None` when the prompt names no number."""
        found = _BUDGET.search(self.system)
        return int(found.group(1)) if found else None

    @property
    def trajectories(self) -> list[str]:
        """The text of each trajectory, in order."""
        return _cut(_TRAJECTORY, self.section("Trajectories") or self.user)

    def pairs(self, *categories: str) -> list[str]:
        """The text of each compared pair of these categories, in order."""
        parts = [(_CATEGORY.match(part), part) for part in _cut(_CATEGORY, self.section("Comparison"))]
        return [pair for found, part in parts if found and found.group(1) in categories for pair in _cut(_PAIR, part)]

    @property
    def candidates(self) -> list[str]:
        """The text of each numbered candidate, in the order of the numbers 0, 1, ..."""
        return _cut(_CANDIDATE, self.section("Candidate edits"))

    @property
    def notes(self) -> list[str]:
        """The notes that are to be consolidated, in order."""
        lines = self.section("Notes to consolidate").splitlines()
        return [line.removeprefix("- ") for line in lines if line.startswith("- ")]

    def items(self, key: str = "op") -> list[dict[str, Any]]:
        """The JSON objects with `key` in the patches or suggestions, in order."""
        text = self.section("Patches") or self.section("Suggestions") or self.user
        return [item for item in _objects(text) if key in item]


def _sections(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
        elif fence and line.strip() == fence:
            fence = ""
        heading = None if fence else _HEADING.match(line)
        if heading:
            lines = found.setdefault(heading.group(1).casefold(), [])
        else:
            lines.append(line)
    return {name: "\n".join(part) for name, part in found.items()}


def _cut(pattern: re.Pattern[str], text: str) -> list[str]:
    """The pieces of `text` that begin with the pattern, each up to the next."""
    starts = [match.start() for match in pattern.finditer(text)]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object of the text that has no list of objects in it; what is not JSON is passed over."""
    decoder, at = json.JSONDecoder(), 0
    while found := re.compile(r"[\[{]").search(text, at):
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.end()
            continue
        yield from _inside(value)


def _inside(value: Any) -> Iterator[dict[str, Any]]:
    parts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    nested = [one for part in parts if isinstance(part, dict | list) for one in _inside(part)]
    if nested:
        yield from nested
    elif isinstance(value, dict):
        yield value


def digest(role: str, model: str, request: ChatRequest) -> str:
    """What makes two requests the same: role, model, messages, tools, schema, limits and the request's own seed.

    Not the stage and not the deadline: the same question to the same model has the same answer.
    """
    content = [
        role,
        model,
        [_message(message) for message in request.messages],
        [(tool.name, tool.description, tool.parameters) for tool in request.tools],
        [request.tool_choice, request.schema, request.max_tokens, request.effort, request.temperature, request.seed],
    ]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _message(message: Message) -> list[Any]:
    parts = message.content if isinstance(message.content, tuple) else ()
    images = [hashlib.sha256(part.data).hexdigest() for part in parts if isinstance(part, ImagePart)]
    return [message.role, message.text, images, [call.arguments for call in message.tool_calls]]
