"""The program that the Claude Agent SDK for Python brings, which is Claude Code: no npm is needed for it.

It is run as any other one, with the same tools, limits and trajectory; of the SDK itself nothing is imported.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from skillopt_kernel.errors import ConfigError
from skillopt_lib_agent.finding import find_program

Use = Literal["auto", "sdk", "cli"]

INSTALL = "pip install 'skillopt-backend-claude-code-exec[sdk]'"

_WORDS: dict[str, Use] = {
    **dict.fromkeys(("", "auto"), "auto"),
    **dict.fromkeys(("sdk", "true", "yes", "on", "1"), "sdk"),
    **dict.fromkeys(("cli", "false", "no", "off", "0"), "cli"),
}


def use_of(value: bool | str) -> Use:
    """The setting's meaning. Raises `ValueError`."""
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise ValueError(f"must be auto, sdk or cli, not {value!r}")
    return _WORDS[word]


def command_of(path: str, use: Use) -> str:
    """The program to run: the one set, or the SDK's; of `auto` the one set where it is found. Raises `ConfigError`."""
    if use == "cli" or (use == "auto" and find_program(path) is not None):
        return path
    bundled = bundled_program()
    if bundled is not None:
        return str(bundled)
    if use == "auto":
        return path
    raise ConfigError(
        f"model.claude_code_exec_use_sdk is sdk, and no Claude Agent SDK with a program of its own is installed. "
        f"Install it (`{INSTALL}`), or set the key to cli for the program at model.claude_code_exec_path."
    )


def bundled_program() -> Path | None:
    """Where the SDK has its program; `None` where it is not installed, or brings none for this system."""
    found = find_spec("claude_agent_sdk")
    name = "claude.exe" if os.name == "nt" else "claude"
    folders = [Path(folder) for folder in (found.submodule_search_locations or ())] if found else []
    return next((file for folder in folders if (file := folder / "_bundled" / name).is_file()), None)
