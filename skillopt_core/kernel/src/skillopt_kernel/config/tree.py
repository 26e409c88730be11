"""Values with the place where each was written: what configuration files and overrides are made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

REDACTED = "[redacted]"
"""What stands for a credential where a configuration is shown; read back, it means "not set"."""


@frozen
class Place:
    """Where a value was written.

    label   a file as it is shown, or what else gave the value: "-o", "environment variable X", "plugin critic"
    line    with `column` for files alone: within a command line or a variable they help nobody
    folder  where a relative path is looked for first
    depth   how far from the user: 0 the file named, 1 its bases, 2 theirs; -1 an override; the nearer one wins
    """

    label: str
    line: int | None = None
    column: int | None = None
    folder: Path | None = None
    depth: int = 0

    def __str__(self) -> str:
        return f"{self.label}:{self.line}:{self.column}" if self.line else self.label


DEFAULT = Place("default", depth=1_000_000)


@frozen
class Node:
    """One value: a scalar, a tuple of nodes, or a dict of nodes by key.

    text   how a plain scalar was spelt, so that a text key keeps `no` or `1e10` as they stand
    key    the place of the key that this is the value of
    alias  how the key was written, where that is not its dotted name; messages name it so
    """

    value: Any
    place: Place
    text: str | None = None
    key: Place | None = field(default=None, eq=False)
    alias: str | None = field(default=None, eq=False)

    @property
    def where(self) -> Place:
        """The place to name in a message: the key's, else the value's own."""
        return self.key or self.place

    @property
    def empty(self) -> bool:
        """Whether this says "not set": null, an empty text, or a credential that was not shown."""
        return self.value in (None, "", REDACTED)

    @property
    def written(self) -> Any:
        """The value as a text key takes it: as it was spelt, but null stays null."""
        return self.value if self.text is None or self.value is None else self.text


def from_python(value: Any, place: Place) -> Node:
    """A node tree of plain Python values. Numbers and booleans keep no text: in Python the type is meant."""
    if isinstance(value, Mapping):
        return Node({str(key): from_python(item, place) for key, item in value.items()}, place)
    if isinstance(value, list | tuple):
        return Node(tuple(from_python(item, place) for item in value), place)
    return Node(str(value) if isinstance(value, Path) else value, place)


def plain(node: Node) -> Any:
    """The plain Python value of a node."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    return [plain(item) for item in node.value] if isinstance(node.value, tuple) else node.value


def merge(base: Node, child: Node) -> Node:
    """`child` over `base`: mappings are merged key by key, anything else is replaced whole."""
    if not (isinstance(base.value, dict) and isinstance(child.value, dict)):
        return child
    merged = dict(base.value)
    for key, item in child.value.items():
        merged[key] = merge(merged[key], item) if key in merged else item
    return evolve(child, value=merged)


def at(node: Node, path: tuple[str, ...]) -> Node:
    """The node at `path`, or the deepest one on the way there."""
    for step in path:
        if not isinstance(node.value, dict) or step not in node.value:
            break
        node = node.value[step]
    return node
