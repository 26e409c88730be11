"""Fields of settings classes: their default, description, limits, and whether they hold a secret.

Made for the kernel's own sections and for drivers alike::

    @frozen
    class MixedSettings:
        gate_mixed_weight: float = option(0.5, "share of partial credit in the score", between(0, 1))

Metadata that a field may carry:

    description  one line for listings; a docstring line "name  description" serves as well
    secret       the value is a credential: never shown, never stored
    env          the environment variable's name without a role, where it is not PREFIX + NAME
    more_env     further names of it, asked after it
    role_env     further names of it for one role, "{}" in place of the role's
    path         for `Path` fields: "input" (the default: must exist), "lazy" (looked for; its user reports a
                 missing one) or "output" (relative to the working directory, need not exist)
    free         may change when a run is resumed, since it cannot change a result
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import attrs

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]

SECRET_ENDINGS = ("api_key", "token", "secret", "password")


def option(default: Any, description: str, check: Check | None = None, **metadata: Any) -> Any:
    """One attrs field with its default, description and an optional check of the value."""
    return attrs.field(
        default=attrs.Factory(default) if isinstance(default, type) else default,
        validator=None if check is None else check,
        metadata={"description": description, **metadata},
    )


def _limit(holds: Callable[[Any], bool], limit: str) -> Check:
    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not holds(value):
            raise ValueError(f"must be {limit}, not {value}")

    return check


def at_least(low: float) -> Check:
    """A check for numbers: `low` or more."""
    return _limit(lambda value: value >= low, f"at least {low}")


def above(low: float, most: float = math.inf) -> Check:
    """A check for numbers: more than `low`, and at most `most`."""
    limit = "" if most == math.inf else f" and at most {most}"
    return _limit(lambda value: low < value <= most, f"greater than {low}{limit}")


def between(low: float, high: float) -> Check:
    """A check for numbers: from `low` to `high`, both allowed."""
    return _limit(lambda value: low <= value <= high, f"from {low} to {high}")


def description(settings: type, name: str) -> str:
    """What a field is for: its metadata, else the line of the class's docstring that begins with its name."""
    text = getattr(attrs.fields_dict(settings)[name], "metadata", {}).get("description")
    if text:
        return str(text)
    found = re.search(rf"^\s*{re.escape(name)}(?:\s{{2,}}|:\s+)(\S.*)$", settings.__doc__ or "", re.MULTILINE)
    return found.group(1).strip() if found else ""


def is_secret_name(name: str) -> bool:
    """Whether a key's name says that it holds a credential (`..._api_key`, `..._token`, ...)."""
    plain = name.lower().replace("-", "_")
    return plain.endswith(SECRET_ENDINGS) and not plain.endswith("max_token")


def is_secret(field: attrs.Attribute[Any]) -> bool:
    """Whether a field holds a credential: its metadata says so, else its name."""
    return bool(field.metadata.get("secret", is_secret_name(field.name)))


def variable_of(field: attrs.Attribute[Any], prefix: str) -> str:
    """The environment variable that a backend's field is read from, without a role; `prefix`: of that backend."""
    return str(field.metadata.get("env") or f"{prefix}{field.name}".upper())


def default_of(field: attrs.Attribute[Any]) -> Any:
    """A field's default value. A factory is called; factories that take the instance are not for settings."""
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
