"""YAML to nodes: UTF-8, every value with its line and column, duplicate keys refused.

The node tree is composed once and read here, not by PyYAML's constructor, which forgets positions, keeps the
last of two equal keys, and takes `2:1:7` for a number of seconds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from attrs import evolve

from skillopt_kernel.config.tree import Node, Place
from skillopt_kernel.errors import ConfigError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MOST = 100_000
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""Numbers such as `1e-3`, which YAML 1.1 takes for text and everybody else for a number."""


def read_file(path: Path, label: str, depth: int) -> Node:
    """The mapping in a YAML file. `label` is how the file is named in messages.

    Raises `ConfigError` for a file that cannot be read, is not UTF-8 (with the byte's offset; a byte order mark
    is allowed), is not YAML, or holds no mapping.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{label}: cannot be read ({error.strerror or error}); correct the path") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte order mark.
        offset = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        raise ConfigError(f"{label}: is not UTF-8 (byte offset {offset}); save it as UTF-8") from None
    node = read_text(text, Place("file", label, folder=path.parent, depth=depth))
    if node.value is None:
        return evolve(node, value={})
    if not isinstance(node.value, dict):
        raise ConfigError(f"{node.place}: a configuration is a mapping of sections such as `train:`")
    return node


def read_text(text: str, place: Place) -> Node:
    """The node tree of a YAML text; `place` gives label, folder and depth. Raises `ConfigError`."""
    try:
        composed = yaml.compose(text, Loader=_Loader)
        return Node(None, place) if composed is None else _Reader(place).node(composed, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        here = _place(mark, place) if mark else place
        raise ConfigError(f"{here}: is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{place.label}: is not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{place.label}: is nested too deeply") from None


def _place(mark: Any, place: Place) -> Place:
    return evolve(place, line=mark.line + 1, column=mark.column + 1)


class _Reader:
    """Makes nodes of composed YAML; aliases of aliases cannot make more than `_MOST` values."""

    def __init__(self, place: Place) -> None:
        self.place, self.count = place, 0

    def node(self, composed: Any, above: tuple[int, ...]) -> Node:
        here = _place(composed.start_mark, self.place)
        self.count += 1
        if self.count > _MOST:
            raise ConfigError(f"{here}: holds more than {_MOST} values; are there aliases of aliases?")
        if id(composed) in above:
            raise ConfigError(f"{here}: an alias refers to the value that it stands in")
        if isinstance(composed, yaml.ScalarNode):
            return _scalar(composed, here)
        above = (*above, id(composed))
        kind = "seq" if isinstance(composed, yaml.SequenceNode) else "map"
        if composed.tag != _TAG + kind:
            raise ConfigError(f"{here}: the tag {_shown(composed.tag)} is not supported; write plain YAML")
        if kind == "seq":
            return Node(tuple(self.node(item, above) for item in composed.value), here)
        return Node(self.mapping(composed, above), here)

    def mapping(self, composed: Any, above: tuple[int, ...]) -> dict[str, Node]:
        found: dict[str, Node] = {}
        inherited: dict[str, Node] = {}
        for key, value in composed.value:
            here = _place(key.start_mark, self.place)
            if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "null":
                raise ConfigError(f"{here}: a key must be a word")
            node = self.node(value, above)
            if key.tag == _TAG + "merge":
                for source in node.value if isinstance(node.value, tuple) else (node,):
                    if not isinstance(source.value, dict):
                        raise ConfigError(f"{here}: `<<` takes a mapping or a list of mappings")
                    inherited = source.value | inherited
            elif key.value in found:
                line = found[key.value].where.line
                raise ConfigError(f"{here}: the key {key.value!r} stands here and in line {line}; delete one of them")
            else:
                found[key.value] = evolve(node, key=here)
        return inherited | found


def _scalar(composed: Any, here: Place) -> Node:
    kind, text = composed.tag.removeprefix(_TAG), composed.value
    if composed.style in ("'", '"', "|", ">") and kind == "str":
        return Node(text, here)
    if kind in ("null", "bool", "int", "float") and not (kind in ("int", "float") and ":" in text):
        try:
            return Node(yaml.constructor.SafeConstructor().construct_object(composed), here, text)
        except ValueError as error:  # such as `!!int many`
            raise ConfigError(f"{here}: {text!r} cannot be read: {error}") from None
    if kind not in ("str", "int", "float", "timestamp", "value", "merge"):
        raise ConfigError(f"{here}: the tag {_shown(composed.tag)} is not supported; write plain YAML")
    # `2:1:7` and `12:30` are meant as they stand, not as numbers to the base of 60
    return Node(float(text) if _FLOAT.fullmatch(text) else text, here, text)


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
