"""The turns of an agent as reflection reads them: what it said, every tool call, and what each gave back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field
from skillopt_kernel.records import ToolCall, Trajectory, Turn

LONGEST_OUTPUT = 20_000
"""Characters kept of one tool's output, its start and its end."""

DENIED = "[denied] "
"""What the output of a call begins with that the program did not permit."""


@define
class TrajectoryBuilder:
    """Collects turns in the order in which they happened."""

    _turns: list[Turn] = field(init=False, factory=list)
    _answer: str = field(init=False, default="")

    @property
    def turns(self) -> Trajectory:
        return tuple(self._turns)

    @property
    def answer(self) -> str:
        """What was said last, after the last tool call; "" when nothing was."""
        return self._answer

    def said(self, text: str) -> None:
        """The agent said something; blank texts are left out."""
        if text.strip():
            self._answer = text
            self._turns.append(Turn("assistant", text))

    def noted(self, text: str) -> None:
        """The program told the agent something that nobody asked for; blank texts are left out."""
        if text.strip():
            self._turns.append(Turn("environment", text))

    def called(self, name: str, arguments: str | Mapping[str, Any], id_: str) -> None:
        """The agent called a tool. What it said before is no answer any more."""
        self._answer = ""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self._turns.append(Turn("assistant", "", (ToolCall(id_, name, text),)))

    def returned(self, id_: str, output: str, *, code: int | None = None, denied: bool = False) -> None:
        """What a call gave back; `code`: the exit code of a command, which is told unless it is 0."""
        text = shortened(output)
        if code:
            text = f"{text.rstrip()}\n[exit code {code}]".lstrip()
        self._turns.append(Turn("tool", DENIED * denied + text, tool_call_id=id_))


def shortened(text: str, length: int = LONGEST_OUTPUT) -> str:
    """A long text without its middle."""
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
