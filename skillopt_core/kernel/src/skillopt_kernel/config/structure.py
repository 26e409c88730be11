"""Plain values to typed ones, strictly, with every problem collected and placed.

One cattrs converter without coercion: 3.9 is no 3, true is no 1, "5" is no 5. Only a whole number given for a
float is taken, since nothing is lost.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError, StructureHandlerNotFoundError

from skillopt_kernel.config.fields import is_secret
from skillopt_kernel.config.tree import Node, at, plain

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}


class Mismatch(ValueError):
    """A value of the wrong type. The sentence says what was expected and what came."""


def shown(value: Any) -> str:
    """A value as a message names it, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    return f"the number {value}"


def _wrong(expected: str, value: Any) -> Mismatch:
    hint = ""
    if isinstance(value, str) and expected in (_WORDS[int], _WORDS[float]):
        try:
            float(value)
            hint = "; write it without quotes"
        except ValueError:
            pass
    elif expected in (_WORDS[str], _WORDS[Path]) and isinstance(value, bool | int | float):
        hint = "; put it in quotes"
    elif expected == _WORDS[int] and isinstance(value, float) and value.is_integer():
        hint = f"; write {int(value)}"
    return Mismatch(f"expected {expected}, got {shown(value)}{hint}")


def _scalar(kind: type, accepts: type | tuple[type, ...]) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, accepts) or (isinstance(value, bool) and kind is not bool):
            raise _wrong(_WORDS[kind], value)
        if isinstance(value, float) and not math.isfinite(value):
            raise Mismatch(f"expected a finite number, got {value}")
        return kind(value)

    return hook


def _literal(kind: Any) -> Callable[[Any, Any], Any]:
    choices = get_args(kind)

    def hook(value: Any, _: Any) -> Any:
        from skillopt_kernel.plugins.errors import nearest

        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return choice
        near = nearest(value, [c for c in choices if isinstance(c, str) and c]) if isinstance(value, str) else None
        words = ", ".join(choice or '""' if isinstance(choice, str) else shown(choice) for choice in choices)
        raise Mismatch(f"expected one of {words}, got {shown(value)}" + (f"; did you mean {near!r}?" if near else ""))

    return hook


def _sequence(converter: cattrs.Converter) -> Callable[[Any], Callable[[Any, Any], Any]]:
    def factory(kind: Any) -> Callable[[Any, Any], Any]:
        make = tuple if (get_origin(kind) or kind) is tuple else list
        item = (get_args(kind) or (Any,))[0]

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, list | tuple):
                raise Mismatch(f"expected a list, got {shown(value)}; write [a, b]")
            return make(_each(converter, enumerate(value), item).values())

        return hook

    return factory


def _mapping(converter: cattrs.Converter) -> Callable[[Any], Callable[[Any, Any], Any]]:
    def factory(kind: Any) -> Callable[[Any, Any], Any]:
        item = (get_args(kind) or (str, Any))[1]

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, Mapping):
                raise Mismatch(f"expected a mapping, got {shown(value)}")
            return _each(converter, value.items(), item)

        return hook

    return factory


def _each(converter: cattrs.Converter, items: Iterable[tuple[Any, Any]], kind: Any) -> dict[Any, Any]:
    """Structure every item; the first wrong one is named with its index or key in front."""
    found = {}
    for key, value in items:
        try:
            found[key] = converter.structure(value, kind)
        except Mismatch as error:
            raise Mismatch(f"[{key}]: {error}" if not str(error).startswith("[") else f"[{key}]{error}") from None
    return found


def _union(converter: cattrs.Converter) -> Callable[[Any], Callable[[Any, Any], Any]]:
    def factory(kind: Any) -> Callable[[Any, Any], Any]:
        members = [member for member in get_args(kind) if member is not type(None)]
        optional = len(members) < len(get_args(kind))
        # An exact type is asked before one that would widen: true is true, 3 is 3, before 3 may be 3.0.
        members.sort(key=lambda member: member is float)

        def hook(value: Any, _: Any) -> Any:
            if value is None and optional:
                return None
            problems = []
            for member in members:
                try:
                    return converter.structure(value, member)
                except Mismatch as error:
                    problems.append(str(error))
            if len(problems) == 1:
                raise Mismatch(problems[0])
            words = " or ".join(_WORDS.get(member, "a list" if _is_sequence(member) else "a choice")
                                for member in members)  # fmt: skip
            raise _wrong(words, value)

        return hook

    return factory


def _is_sequence(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (list, tuple, Sequence)


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def make_converter() -> cattrs.Converter:
    """The strict converter. Each caller has its own: hooks that one adds concern nobody else."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
    for kind, accepts in ((bool, bool), (int, int), (float, (int, float)), (str, str), (Path, (str, Path))):
        converter.register_structure_hook(kind, _scalar(kind, accepts))
    for matches, factory in (
        (_is_sequence, _sequence(converter)),
        (_is_mapping, _mapping(converter)),
        (_is_union, _union(converter)),
        (_is_literal, _literal),
    ):
        converter.register_structure_hook_factory(matches)(factory)
    return converter


def scalar_kinds(kind: Any) -> set[Any]:
    """The scalar types that a declared type is made of in the end, without None."""
    if _is_literal(kind):
        return {type(choice) for choice in get_args(kind)}
    if get_origin(kind) is not None:
        parts = get_args(kind)[1:] if _is_mapping(kind) else get_args(kind)
        return set().union(*(scalar_kinds(part) for part in parts if part not in (Ellipsis, type(None))))
    return {kind}


def fields_of(settings: type[Any]) -> dict[str, attrs.Attribute[Any]]:
    """A settings class's fields by name, types resolved. Fields that begin with an underscore are not keys."""
    return {field.name: field for field in attrs.fields(attrs.resolve_types(settings)) if field.init}


def _takes(kind: Any, matches: Callable[[Any], bool] | None) -> bool:
    """Whether a declared type is, or has among its alternatives, one that `matches`; true when nothing is asked."""
    return matches is None or any(matches(part) for part in (get_args(kind) if _is_union(kind) else (kind,)))


class Structurer:
    """Structures fields one by one and collects every problem as `place: key: sentence`."""

    def __init__(self) -> None:
        self.converter = make_converter()
        self.problems: list[str] = []

    def value(self, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
        """The typed value of one field, its check passed; `attrs.NOTHING` after a problem, which is collected."""
        declared: Any = field.type
        kinds = scalar_kinds(declared)
        raw = plain(node, as_text=kinds <= {str, Path})
        collections: dict[Any, Callable[[Any], bool]] = {dict: _is_mapping, list: _is_sequence}
        if kinds <= {str, Path} and node.text is not None and not _takes(declared, collections.get(type(raw))):
            raw = node.text  # an override that looks like a collection, for a key that takes text alone
        if raw == "" and _is_union(declared) and str not in kinds:
            raw = None  # an empty optional path is none
        try:
            value = self.converter.structure(raw, declared)
            if field.validator is not None:
                field.validator(None, field, value)
        except (ValueError, TypeError, StructureHandlerNotFoundError, ForbiddenExtraKeysError) as error:
            self.problem(node, key, str(error), secret=is_secret(field))
            return attrs.NOTHING
        return value

    def problem(self, node: Node, key: str, sentence: str, secret: bool = False) -> None:
        """Collect one problem. A credential's sentence is not repeated, since it may quote the value."""
        if secret:
            sentence = "has a value that cannot be used; a credential is a text"
        if sentence.startswith("["):
            index, _, rest = sentence.partition("]: ")
            path = tuple(int(part) if part.isdigit() else part for part in index.strip("[").split("]["))
            node, key, sentence = at(node, path), f"{key}{index}]", rest
        line = f"{node.where}: {key}: {sentence}"
        if line not in self.problems:
            self.problems.append(line)

    def build(self, settings: type, values: Mapping[str, Any], where: str) -> Any:
        """An instance of a settings class; what its own checks find is a problem at `where`.

        Values with a problem are left out, so that what depends on the others can still be judged.
        """
        good = {name: value for name, value in values.items() if value is not attrs.NOTHING}
        by_alias = {str(field.alias): good[name] for name, field in fields_of(settings).items() if name in good}
        try:
            return settings(**by_alias)
        except (ValueError, TypeError) as error:
            if len(good) == len(values):
                self.problems.append(f"{where}: {error}")
            return None
