"""Values with the place where each was written: what configuration files and overrides are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, field, frozen

Kind = Literal["override", "plugin", "file", "mapping", "environment", "default"]


@frozen
class Place:
    """Where a value was written.

    label   a file as it is shown, or what an override was ("-o train.batch_size")
    folder  where a relative path is looked for first
    depth   how far from the user: 0 the file named, 1 its bases, 2 theirs; -1 an override; the nearer one wins
    """

    kind: Kind
    label: str
    line: int | None = None
    column: int | None = None
    folder: Path | None = None
    depth: int = 0

    def __str__(self) -> str:
        # Lines and columns within a command line or a variable help nobody.
        return f"{self.label}:{self.line}:{self.column}" if self.kind == "file" and self.line else self.label


DEFAULT = Place("default", "default", depth=1_000_000)


@frozen
class Node:
    """One value: a scalar, a tuple of nodes, or a dict of nodes by key.

    text  how a plain scalar was spelt, so that a text key keeps `no` or `1e10` as they stand
    key   the place of the key that this is the value of
    """

    value: Any
    place: Place
    text: str | None = None
    key: Place | None = field(default=None, eq=False)

    @property
    def where(self) -> Place:
        """The place to name in a message: the key's, else the value's own."""
        return self.key or self.place

    @property
    def empty(self) -> bool:
        """Whether this says "not set": null, or an empty text."""
        return self.value is None or self.value == ""


def from_python(value: Any, place: Place) -> Node:
    """A node tree of plain Python values. Numbers and booleans keep no text: in Python the type is meant."""
    if isinstance(value, Mapping):
        return Node({str(key): from_python(item, place) for key, item in value.items()}, place)
    if isinstance(value, list | tuple):
        return Node(tuple(from_python(item, place) for item in value), place)
    return Node(str(value) if isinstance(value, Path) else value, place)


def plain(node: Node, as_text: bool = False) -> Any:
    """The plain Python value of a node. `as_text`: scalars as they were spelt, where they are not null."""
    if isinstance(node.value, dict):
        return {key: plain(item, as_text) for key, item in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item, as_text) for item in node.value]
    return node.text if as_text and node.text is not None and node.value is not None else node.value


def merge(base: Node, child: Node) -> Node:
    """`child` over `base`: mappings are merged key by key, anything else is replaced whole."""
    if not (isinstance(base.value, dict) and isinstance(child.value, dict)):
        return child
    merged = dict(base.value)
    for key, item in child.value.items():
        merged[key] = merge(merged[key], item) if key in merged else item
    return evolve(child, value=merged)


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every (dotted key, node) below `node` that is not a mapping with keys, in order."""
    if isinstance(node.value, dict) and (node.value or not path):
        for key, item in node.value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    else:
        yield path, node


def at(node: Node, path: tuple[str | int, ...]) -> Node:
    """The node at `path`, or the deepest one on the way there."""
    for step in path:
        inside = dict(enumerate(node.value)) if isinstance(node.value, tuple) else node.value
        if not isinstance(inside, dict) or step not in inside:
            break
        node = inside[step]
    return node
