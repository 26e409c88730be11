"""Prompts: Markdown with `{{name}}`, found in three places and checked when they are loaded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import did_you_mean
from skillopt_kernel.stages import prompts as kernel_prompts

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ANALYST = frozenset({"budget", "schema", "payload"})
_MERGE = frozenset({"level", "schema", "payload"})
VARIABLES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("analyst_failure", "analyst_success"), _ANALYST),
    **dict.fromkeys(("merge_failure", "merge_success", "merge_final"), _MERGE),
    **dict.fromkeys(("slow_update", "meta_skill", "rewrite"), frozenset()),
    "ranking": frozenset({"budget"}),
}
"""Prompt -> the names that it may use; prompts that are not listed may use those of analysts.

budget   a number, or "no limit"
schema   the JSON schema of one item
payload  the key of the reply that holds the items
level    the level of the merge tree, from 1; 0 for the last merge
"""


@frozen
class Prompt:
    """One prompt as it is used. `source` says where it was found, `hash` is 16 hex digits of SHA-256."""

    name: str
    text: str
    source: str
    hash: str

    def fill(self, **values: Any) -> str:
        """The text with every `{{name}}` replaced, in one pass: nothing in a value is replaced again.

        Values that the prompt does not use are ignored. Raises `KeyError` when one that it uses is not given.
        """
        return _VARIABLE.sub(lambda match: str(values[match[1]]), self.text)


def make_prompt(name: str, text: str, source: str) -> Prompt:
    """Check `text` and make a prompt of it.

    Raises `ConfigError`, naming `source`, the line and the known names, for an unknown `{{name}}` and for a
    blank text.
    """
    if not text.strip():
        raise ConfigError(f"{source}: the prompt {name!r} is empty; write it, or leave the key out to use the default")
    known = VARIABLES.get(name, _ANALYST)
    problems = []
    for match in _VARIABLE.finditer(text):
        if match[1] not in known:
            line = text.count("\n", 0, match.start()) + 1
            names = ", ".join(f"{{{{{each}}}}}" for each in sorted(known)) or "plain text"
            problems.append(f"{source}:{line}: the prompt {name!r} uses {match[0]}, but it can only use {names}")
    if problems:
        raise ConfigError(*problems)
    return Prompt(name, text, source, hashlib.sha256(text.encode("utf-8")).hexdigest()[:16])


def resolve_prompts(config_prompts: Mapping[str, Path], environment: Any, update_mode: Any) -> dict[str, Prompt]:
    """The prompts of a run by name: the configuration's, else the environment's, the update mode's, the kernel's.

    config_prompts  name -> path of a Markdown file
    environment     may have a method `prompts() -> Mapping[str, str]`; names that there are not are not used
    update_mode     has `name` and `prompts() -> Mapping[str, str]`, those of its stages

    Raises `ConfigError` for a name that there is not, a file that cannot be read and an unknown `{{name}}`.
    """
    of_mode = update_mode.prompts()
    defaults = {**kernel_prompts(), **of_mode}
    if unknown := [name for name in config_prompts if name not in defaults]:
        raise ConfigError(
            *(
                f"prompts.{name}: there is no prompt of this name.{did_you_mean(name, defaults)} There are "
                f"{', '.join(sorted(defaults))}"
                for name in unknown
            )
        )
    own: Mapping[str, str] = environment.prompts() if hasattr(environment, "prompts") else {}
    resolved: dict[str, Prompt] = {}
    for name, default in defaults.items():
        if name in config_prompts:
            text, source = read_prompt(name, config_prompts[name]), str(config_prompts[name])
        elif name in own:
            text, source = own[name], f"the environment's prompt {name}"
        else:
            owner = f"the update mode {update_mode.name}" if name in of_mode else f"the kernel's stage {name}"
            text, source = default, f"the prompt {name} of {owner}"
        resolved[name] = make_prompt(name, text, source)
    return resolved


def read_prompt(name: str, path: Path) -> str:
    """The text of a prompt's file. Raises `ConfigError`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not UTF-8 at byte {error.start}"
        raise ConfigError(f"prompts.{name}: the file {path} cannot be read: {reason}; correct it or its path") from None
