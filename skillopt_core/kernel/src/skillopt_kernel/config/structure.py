"""Nodes to typed values, strictly, with every problem collected and placed.

One cattrs converter without coercion: 3.9 is no 3, true is no 1, "5" is no 5. Only a whole number given for a
float is taken, since nothing is lost. Paths are looked for on the way.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from attrs import evolve, frozen
from cattrs.errors import StructureHandlerNotFoundError

from skillopt_kernel.config.fields import is_secret
from skillopt_kernel.config.packaged import candidates
from skillopt_kernel.config.tree import Node, plain
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.store.patterns import clipped, redact_diagnostics

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}


@frozen
class _Given:
    """What the converter structures: a node, its dotted key, and how a path in it is looked for."""

    node: Node
    key: str
    path: str


class _Mismatch(ValueError):
    """A value that cannot be used. The sentence says what was expected and what came."""

    def __init__(self, given: _Given, sentence: str) -> None:
        super().__init__(sentence)
        self.given = given


def fields_of(settings: type[Any] | None) -> dict[str, attrs.Attribute[Any]]:
    """A settings class's fields by name, types resolved; none when there is no class."""
    if settings is None:
        return {}
    return {field.name: field for field in attrs.fields(attrs.resolve_types(settings)) if field.init}


def guess(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The end of a sentence about a wrong name: the nearest right one, else `otherwise`."""
    near = nearest(name, list(names))
    return f"; did you mean {near!r}?" if near else otherwise


def _shown(value: Any) -> str:
    """A value as a message names it, short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"the text {clipped(redact_diagnostics(value), 60)!r}" if isinstance(value, str) else f"the number {value}"


def _held(given: _Given, kind: type, words: str = "mapping", hint: str = "") -> Any:
    """The dict or tuple that a node must hold."""
    if not isinstance(given.node.value, kind):
        raise _Mismatch(given, f"expected a {words}, got {_shown(given.node.value)}{hint}")
    return given.node.value


def _made_of(origins: tuple[Any, ...], kind: Any) -> bool:
    return (get_origin(kind) or kind) in origins


class Structurer:
    """Structures fields one by one and collects every problem as `place: key: sentence`."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.written: dict[str, str] = {}
        """Path -> how it was written, which says the same on another machine."""
        self._converter = cattrs.Converter(detailed_validation=False)
        for kind in _WORDS:
            self._converter.register_structure_hook(kind, self._scalar)
        self._converter.register_structure_hook_func(partial(_made_of, (Any,)), lambda given, _: plain(given.node))
        for origins, hook in (
            ((Literal,), self._literal),
            ((Union, types.UnionType), self._union),
            ((list, tuple, Sequence), self._sequence),
            ((dict, Mapping), self._mapping),
        ):
            self._converter.register_structure_hook_func(partial(_made_of, origins), hook)
        self._converter.register_structure_hook_func(attrs.has, self._nested)

    def value(self, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
        """The typed value of one field, its check passed; `attrs.NOTHING` after a problem, which is collected."""
        given = _Given(node, key, field.metadata.get("path", "input"))
        try:
            return self._checked(given, field)
        except (ConfigError, ValueError, TypeError, StructureHandlerNotFoundError) as error:
            wrong = getattr(error, "given", given)
            # A credential's sentence is not repeated, since it may quote the value.
            hidden = "has a value that cannot be used; a credential is a text"
            self.problem(wrong.node, wrong.key, hidden if is_secret(field) else str(error))
            return attrs.NOTHING

    def problem(self, node: Node, key: str, sentence: str) -> None:
        """Collect one problem."""
        self.problems.append(f"{node.where}: {node.alias or key}: {sentence}")

    def build(self, settings: type, values: Mapping[str, Any], where: str) -> Any:
        """An instance of a settings class; what its own checks find is a problem at `where`.

        Values with a problem are left out, so that what depends on the others can still be judged.
        """
        good = {name: value for name, value in values.items() if value is not attrs.NOTHING}
        try:
            return settings(**good)
        except (ValueError, TypeError) as error:
            if len(good) == len(values):
                self.problems.append(f"{where}: {error}")
            return None

    # The converter's hooks ---------------------------------------------------------------------------------

    def _scalar(self, given: _Given, kind: Any) -> Any:
        value = given.node.written if kind in (str, Path) else given.node.value
        accepted: Any = {float: (float, int), Path: str}.get(kind, kind)
        fits = isinstance(value, accepted) and isinstance(value, bool) == (kind is bool)
        if not fits or (kind is Path and not value):
            number = kind in (int, float) and isinstance(value, str) and value.replace(".", "", 1).isdigit()
            hint = "; write it without quotes" if number else ""
            raise _Mismatch(given, f"expected {_WORDS[kind]}, got {_shown(value)}{hint}")
        if isinstance(value, float) and not math.isfinite(value):
            raise _Mismatch(given, f"expected a finite number, got {value}")
        return self._path(given, value) if kind is Path else kind(value)

    def _path(self, given: _Given, text: str) -> Path:
        tried = candidates(text, given.node.place)
        there = tried[-1:] if given.path == "output" else [path for path in tried if path.exists()]
        found = (there or tried[-1:])[0]
        sentence = f"{text!r} is not at {' nor at '.join(map(str, tried))}"
        if not there and given.path == "input":
            raise _Mismatch(given, sentence)
        if not there:
            self.warnings.append(f"{given.node.where}: {given.node.alias or given.key}: {sentence}")
        self.written[str(found)] = text
        return found

    def _literal(self, given: _Given, kind: Any) -> Any:
        choices = get_args(kind)
        for value in (given.node.written, given.node.value):
            if value in choices and not isinstance(value, bool):
                return value
        near = guess(str(given.node.written), [each for each in map(str, choices) if each])
        words = ", ".join(str(each) or '""' for each in choices)
        raise _Mismatch(given, f"expected one of {words}, got {_shown(given.node.value)}{near}")

    def _union(self, given: _Given, kind: Any) -> Any:
        members = [member for member in get_args(kind) if member is not type(None)]
        problems = []
        # What takes less is asked first: true is true, 3 is 3 before it may be 3.0, and text is anything written.
        for member in sorted(members, key=lambda member: (member in (str, Path), member is float)):
            try:
                return self._converter.structure(given, member)
            except _Mismatch as error:
                problems.append(error)
        if given.node.empty and type(None) in get_args(kind):
            return None
        raise problems[0]

    def _sequence(self, given: _Given, kind: Any) -> Any:
        held = _held(given, tuple, "list", "; write [a, b]")
        found = self._items(given, enumerate(held), (get_args(kind) or (Any,))[0])
        return (tuple if (get_origin(kind) or kind) is tuple else list)(found.values())

    def _mapping(self, given: _Given, kind: Any) -> Any:
        return self._items(given, _held(given, dict).items(), (get_args(kind) or (str, Any))[1])

    def _nested(self, given: _Given, kind: Any) -> Any:
        """An instance of a settings class within another; empty values keep their default.

        A class that is written otherwise reads itself: `from_node(given, nested, problem)` gets the value with its
        place (`given.node`), `nested(given, kind)` to read another settings class, and the error to raise,
        `problem(given, sentence)`.
        """
        if hasattr(kind, "from_node"):
            return kind.from_node(given, self._nested, _Mismatch)
        fields, values = fields_of(kind), {}
        for name, node in _held(given, dict).items():
            inner = evolve(given, node=node, key=f"{given.key}.{name}")
            if name not in fields:
                raise _Mismatch(inner, f"is no key{guess(name, fields, '; there are ' + ', '.join(fields))}")
            if not node.empty:
                values[name] = self._checked(inner, fields[name])
        if lacking := [name for name, each in fields.items() if each.default is attrs.NOTHING and name not in values]:
            raise _Mismatch(given, f"lacks {' and '.join(lacking)}")
        return kind(**values)

    def _checked(self, given: _Given, field: attrs.Attribute[Any]) -> Any:
        value = self._converter.structure(given, field.type)  # type: ignore[arg-type]
        try:
            if field.validator is not None:
                field.validator(None, field, value)
        except ValueError as error:
            raise _Mismatch(given, str(error)) from error
        return value

    def _items(self, given: _Given, items: Iterable[tuple[Any, Node]], kind: Any) -> dict[Any, Any]:
        return {
            key: self._converter.structure(evolve(given, node=node, key=f"{given.key}[{key}]"), kind)
            for key, node in items
        }
