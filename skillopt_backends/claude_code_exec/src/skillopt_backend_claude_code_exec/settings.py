"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen
from skillopt_kernel.config.fields import at_least
from skillopt_lib_agent.claude.program import MODEL, ClaudeSettings
from skillopt_lib_agent.settings import one_of

from skillopt_backend_claude_code_exec.sdk import use_of

_TOOL = re.compile(r"[A-Za-z][\w-]*")

_EFFORTS = ("", "none", "off", "low", "medium", "high", "xhigh", "max")


def _tools(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str]) -> None:
    for name in value:
        if not _TOOL.fullmatch(name):
            raise ValueError(f"must name tools of Claude Code, such as Read or WebFetch, not {name!r}")


def _use_sdk(_: Any, attribute: attrs.Attribute[Any], value: bool | str) -> None:
    use_of(value)


@frozen
class ClaudeCodeExecSettings(ClaudeSettings):
    """Settings of the backend, beside those of every backend on Claude Code.

    path                 the program: a name that PATH leads to, or where it lies
    use_sdk              auto: the program at path, where there is none that of the Claude Agent SDK; sdk, cli: this one
    profile              a file with settings of Claude Code (JSON) that its jobs are to have; empty: none
    effort               its reasoning effort: low, medium, high, xhigh or max; empty or off: its own; none: no thinking
    max_thinking_tokens  the most tokens of thinking in one reply, for models that take a limit; 0: none is said
    max_tokens           the most tokens of one reply; null: the program's own limit
    tools                its tools, in place of Read, Glob and Grep, and for jobs that write Edit, Write and Bash
    """

    path: str = field(default="claude", metadata={"free": True})
    use_sdk: bool | str = field(default="auto", validator=_use_sdk, metadata={"free": True})
    profile: Path | None = None
    effort: str = field(default="medium", validator=one_of(*_EFFORTS))
    max_thinking_tokens: int = field(default=16384, validator=at_least(0))
    max_tokens: int | None = field(default=None, validator=at_least(1))
    tools: tuple[str, ...] = field(default=(), validator=_tools)

    @property
    def model(self) -> str:
        """The model of a role that names none."""
        return MODEL
