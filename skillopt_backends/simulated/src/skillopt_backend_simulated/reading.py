"""Reads a YAML file into frozen classes, strictly: each problem names its file, line and key.

The classes say what is allowed: a field's annotation gives its form, a field without a default is required,
and a field's validator refuses a value. All problems are collected, so that one reading shows them together.
"""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import attrs
from skillopt_kernel.config.reading import read_file
from skillopt_kernel.config.structure import Structurer, fields_of
from skillopt_kernel.config.tree import Node, at
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import nearest


class StrictFile:
    """One YAML file as an instance of `cls`, in `made`; `problem` adds what only its user can see.

    Raises `ConfigError` with every problem of the form.
    """

    def __init__(self, path: Path, cls: type[Any]) -> None:
        self._root = read_file(path, str(path), depth=0)
        self._structurer = Structurer()
        self.made: Any = self._object(self._root, cls, "")
        self.stop_if_wrong()

    def problem(self, keys: tuple[str, ...], sentence: str) -> None:
        """Add a problem at the key with these parts, or at the deepest part that is there."""
        self._structurer.problem(at(self._root, keys), ".".join(keys), sentence)

    def stop_if_wrong(self) -> None:
        """Raises `ConfigError` when there has been a problem."""
        if self._structurer.problems:
            raise ConfigError(*self._structurer.problems)

    def _object(self, node: Node, cls: type[Any], key: str) -> Any:
        if not isinstance(node.value, dict):
            self._structurer.problem(node, key, f"must be a mapping with the keys {', '.join(fields_of(cls))}")
            return attrs.NOTHING
        fields = fields_of(cls)
        for name, child in node.value.items():
            if name not in fields:
                near = nearest(name, list(fields))
                advice = f"did you mean {near!r}?" if near else f"known are {', '.join(fields)}"
                self._structurer.problem(child, f"{key}{name}", f"no such key; {advice}")
        values = {}
        for name, field in fields.items():
            if name in node.value:
                values[name] = self._value(node.value[name], field, f"{key}{name}")
            elif field.default is attrs.NOTHING:
                self._structurer.problem(node, f"{key}{name}", "is missing and has no default")
                values[name] = attrs.NOTHING
        return self._structurer.build(cls, values, str(node.where))

    def _value(self, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
        form: Any = field.type
        if attrs.has(form):
            return self._object(node, form, f"{key}.")
        inner = typing.get_args(form)[-1] if typing.get_args(form) else None
        if inner is None or not attrs.has(inner):
            return self._structurer.value(node, field, key)
        if not isinstance(node.value, dict):
            self._structurer.problem(node, key, "must be a mapping of names to mappings")
            return attrs.NOTHING
        return {name: self._object(child, inner, f"{key}.{name}.") for name, child in node.value.items()}
