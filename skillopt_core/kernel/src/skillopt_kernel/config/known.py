"""Keys that people know although no schema or installed driver declares them, from `known_keys.yaml`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.known import known_names

_KEYS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "known_keys.yaml").read_text(encoding="utf-8"))

OWNED: dict[str, tuple[str, str]] = {key: tuple(owner.split()) for key, owner in _KEYS["owned"].items()}
"""Key -> kind and name of a driver that owns it: accepted, and unused, while no driver in use owns it."""

SWITCHES: dict[str, str] = _KEYS["switches"]
"""Key that, when true, means `hooks.plugins: [<name>]`; the plugin's settings are the keys that it owns."""

RETIRED: dict[str, str] = _KEYS["retired"]
"""Key -> why it is accepted and does nothing, and what to write instead."""

FLAT: dict[str, str] = _KEYS["flat"]
"""Names of keys outside any section that differ from the key's name in its section."""

RENAMED: dict[str, str] = _KEYS["renamed"]
"""Key -> the key that it is another name of; the first of several counts."""

OUTDATED, QUOTED = frozenset(_KEYS["outdated"]), frozenset(_KEYS["quoted"])
"""Renamed keys that get a warning; names in `model` whose text in quotes is read as what stands in the quotes."""

EARLIER_MODELS, OTHER_MODELS = frozenset(_KEYS["earlier_models"]), frozenset(_KEYS["other_models"])
"""Models that the earlier system's files named for every role; backends that hardly serve them."""


LABELS: dict[str, str] = {other: name for name, others in _KEYS["labels"].items() for other in others.split()}
"""What people write -> the backend's name. Any other name stands for itself."""

TARGET_ONLY = frozenset(_KEYS["target_only"])
"""Labels that name the target's backend alone."""


def backend_name(text: str) -> str:
    """The name of a backend from a label or alias: trimmed, in lower case; blank is `openai_chat`."""
    plain = text.strip().lower() or "openai_chat"
    return LABELS.get(plain, plain)


def canonical(key: str, text: str) -> str:
    """The name that an alias stands for; other keys' values as they are."""
    if key in ("model.optimizer_backend", "model.target_backend", "model.judge_backend"):
        return backend_name(text) if text.strip() else ""
    names = _KEYS["values"].get(key)
    if names is None:
        return text
    plain = text.strip().lower()
    return next((name for name, aliases in names.items() if plain in aliases.split()), plain)


def backend_prefixes() -> dict[str, str]:
    """What a backend's keys in `model` begin with -> its name, of the installed backends and of those people know."""
    from skillopt_kernel.plugins.discovery import installed, read_manifest

    found: dict[str, str] = _KEYS["prefixes"] | {f"{name}_": name for name in known_names("backend")}
    for plugin in installed("backend"):
        with suppress(SkillOptError):  # a broken plugin breaks nothing that does not use it
            found[read_manifest(plugin).prefix or f"{plugin.name}_"] = plugin.name
    return found
