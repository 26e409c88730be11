"""What the target is asked: a prompt with the fields of a task put in. Nothing in it is ever executed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import did_you_mean

# Names only, in double braces: JSON may stand in a prompt, and no attribute or index can be asked for.
_FIELD = re.compile(r"\{\{([^{}\n]*)\}\}")


def fields_in(template: str) -> tuple[str, ...]:
    """The fields that the template names, each once, in order."""
    return tuple(dict.fromkeys(match[1].strip() for match in _FIELD.finditer(template)))


def check_template(template: str, names: Sequence[str]) -> None:
    """Raise `ConfigError` for a field that is none of `names`, with its line, and for a template without one."""
    problems = []
    for match in _FIELD.finditer(template):
        name = match[1].strip()
        if name not in names:
            line = template.count("\n", 0, match.start()) + 1
            problems.append(
                f"env.prompt, line {line}: {match[0]} is no field that the target could be shown."
                f"{did_you_mean(name, list(names))} Those are {', '.join(names)}."
            )
    if template.strip() and not _FIELD.search(template):
        problems.append(
            f"env.prompt has no field, so that every task would be asked alike. Write "
            f"{' or '.join('{{' + name + '}}' for name in names)} where it belongs."
        )
    if problems:
        raise ConfigError(*problems)


def filled(template: str, inputs: Mapping[str, Any]) -> str:
    """The template with every field put in, in one pass: nothing in a value is put in again."""
    return _FIELD.sub(lambda match: as_text(inputs.get(match[1].strip())), template)


def under_headings(inputs: Mapping[str, Any]) -> str:
    """All fields with a value, each under its name; of one alone its text."""
    texts = {name: as_text(value).strip() for name, value in inputs.items()}
    texts = {name: text for name, text in texts.items() if text}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"## {_title(name)}\n\n{text}" for name, text in texts.items())


def as_text(value: Any) -> str:
    """A value as a prompt shows it: text as it is, a list of texts line by line, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return "\n".join(f"- {entry}" for entry in value)
    return json.dumps(value, ensure_ascii=False)


def _title(name: str) -> str:
    words = name.replace("_", " ").replace(".", " ").strip()
    return words[:1].upper() + words[1:]
