"""Overrides: `-o section.key=value`, and what a plugin returns from `skillopt_configure`.

A value is read as a YAML scalar or flow collection, and keeps its text; a key that takes text uses the text as
it stands, so that a model named `1e10` or `no` stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from skillopt_kernel.config.tree import Node, Place, from_python, merge
from skillopt_kernel.errors import ConfigError


@frozen
class Override:
    """One override: the dotted key (or a bare one, which its owner's section is found for) and the value."""

    key: str
    node: Node


def parse(texts: Sequence[str]) -> list[Override]:
    """Read `key=value` texts. Raises `ConfigError` naming all that have another form."""
    found, problems = [], []
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or not all(key.split(".")):
            problems.append(f"-o {text if not equals else key}: expected section.key=value, such as train.batch_size=8")
            continue
        place = Place("override", "-o", depth=-1)
        found.append(Override(key, _value(value.strip(), place)))
    if problems:
        raise ConfigError(*problems)
    return found


def _value(text: str, place: Place) -> Node:
    from skillopt_kernel.config.reading import read_text

    if not text:
        return Node("", place)  # `-o model.reasoning_effort=` says empty, `=null` says not set
    try:
        node = read_text(text, place)
    except ConfigError:
        return Node(text, place, text)  # no YAML: text as it stands, such as a path with a colon
    quoted = isinstance(node.value, str) and node.text is None  # 'no' in quotes is the word without them
    return node if quoted else evolve(node, text=text)


def from_mapping(overrides: Mapping[str, Any], origin: str) -> list[Override]:
    """The overrides that a plugin returns, `{"train.batch_size": 20}`; sections may be nested mappings."""
    place = Place("plugin", origin, folder=Path.cwd(), depth=-1)
    return [Override(str(key), from_python(value, place)) for key, value in overrides.items()]


def put(root: Node, override: Override, path: Sequence[str]) -> Node:
    """`root` with the value at `path`, mappings on the way made where they are missing.

    Raises `ConfigError` when something on the way is no mapping.
    """
    first, rest = path[0], path[1:]
    inside = root.value if isinstance(root.value, dict) else {} if root.empty else None
    if inside is None:
        raise ConfigError(f"{override.node.place}: {override.key}: a key of {root.where} that is not a mapping")
    if rest:
        below = inside.get(first, Node({}, override.node.place))
        return evolve(root, value={**inside, first: put(below, override, rest)})
    value = override.node
    if isinstance(value.value, dict) and first in inside:
        value = merge(inside[first], value)
    return evolve(root, value={**inside, first: value})
