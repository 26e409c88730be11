"""One layer of a configuration put into sections: a file, a mapping or an override, by whatever names it is written.

The files of the earlier system name keys without a section (`edit_budget: 4`), and some keys by other names. Each
layer is put into sections before layers are merged, so that the nearer one wins whichever form it has.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve

from skillopt_kernel.config import known
from skillopt_kernel.config.reading import read_value
from skillopt_kernel.config.schema import SECTIONS
from skillopt_kernel.config.structure import fields_of
from skillopt_kernel.config.tree import Node, plain
from skillopt_kernel.models.roles import ROLES

ALLOWED = (*SECTIONS, "prompts")
KERNEL_KEYS = [f"{section}.{name}" for section, settings in SECTIONS.items() for name in fields_of(settings)]

HOMES: dict[str, str] = {
    key.partition(".")[2]: key
    for key in (*KERNEL_KEYS, *known.OWNED, *known.RETIRED, *known.RENAMED)
    if key != "env.name" and not key.startswith("hooks.")  # outside a section these words may mean anything
} | known.FLAT
"""Name of a key outside any section -> the dotted key."""

_ORDER = {key: number for number, key in enumerate(known.RENAMED, 1)}


def without_role(name: str) -> str:
    """A key of `model` without the role that it is for: "target_qwen_chat_timeout" is "qwen_chat_timeout"."""
    role, _, rest = name.partition("_")
    return rest if role in ROLES and rest else name


def home(name: str) -> str | None:
    """The dotted key that a name outside any section means; `None` where only an environment can know it."""
    if name in HOMES:
        return HOMES[name]
    return f"model.{name}" if without_role(name).startswith(tuple(known.backend_prefixes())) else None


def in_sections(layer: Node, warnings: list[str]) -> Node:
    """The layer with every key in its section and under its present name; what it says twice goes to `warnings`.

    A name that nobody here knows is taken for the environment's. A mapping of such a name stays where it is.
    """
    sections: dict[str, Node] = {}
    loose: list[tuple[str, Node]] = []
    for name, node in layer.value.items():
        is_section = name in ALLOWED and not (name == "env" and isinstance(node.value, str))
        key = None if is_section else home(name)
        if is_section or (key is None and isinstance(node.value, dict)):
            sections[name] = evolve(node, value=dict(node.value)) if isinstance(node.value, dict) else node
        else:
            loose.append((key or f"env.{name}", evolve(node, alias=name)))
    model: Any = sections["model"].value if "model" in sections else None
    for key in known.RENAMED if isinstance(model, dict) else ():
        name = key.partition(".")[2]
        if name in model:
            loose.append((key, evolve(model.pop(name), alias=key)))
    for key, node in sorted(loose, key=lambda item: _ORDER.get(item[0], 0)):
        section, _, name = known.RENAMED.get(key, key).partition(".")
        into = sections.setdefault(section, Node({}, layer.place))
        if into.value is None:
            into = sections[section] = evolve(into, value={})
        if isinstance(into.value, dict):
            _put(into.value, name, node, f"{section}.{name}", warnings)
        if key in known.OUTDATED and not node.empty:
            warnings.append(f"{node.where}: {node.alias}: is the older name of {section}.{name}; write that")
    _unquote(sections)
    return evolve(layer, value=sections)


def _unquote(sections: dict[str, Node]) -> None:
    """Read numbers and switches that the earlier files hold in quotes; what they are is the driver's to say."""
    keys: Any = sections["model"].value if "model" in sections else None
    for name in known.QUOTED if isinstance(keys, dict) else ():
        if name in keys and isinstance(keys[name].value, str):
            read = read_value(keys[name].value, keys[name].place)
            keys[name] = evolve(keys[name], value=read.value, text=keys[name].value)


def _put(keys: dict[str, Node], name: str, node: Node, key: str, warnings: list[str]) -> None:
    """Put a key into its section, unless the section has it: another name only stands in for an empty value."""
    there = keys.get(name)
    if there is None or (there.empty and key in known.RENAMED.values()):
        keys[name] = node
    elif not node.empty and plain(node) != plain(there):
        warnings.append(
            f"{node.where}: {node.alias}: is not used, since {there.alias or key} says otherwise ({there.where}); "
            f"delete one of the two"
        )
