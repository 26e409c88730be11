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
_KINDS = {"null", "bool", "int", "float", "str", "timestamp", "seq", "map"}
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
    node = read_text(text, Place(label, 1, 1, path.parent, depth))
    if node.value is None:
        return evolve(node, value={})
    if not isinstance(node.value, dict):
        raise ConfigError(f"{node.place}: a configuration is a mapping of sections such as `train:`")
    return node


def read_text(text: str, place: Place) -> Node:
    """The node tree of a YAML text; `place` gives label, folder and depth. Raises `ConfigError`."""
    try:
        composed = yaml.compose(text, Loader=_Loader)
        return Node(None, place) if composed is None else _node(composed, place)
    except yaml.MarkedYAMLError as error:
        here = _at(place, error.problem_mark or error.context_mark)
        raise ConfigError(f"{here}: is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{place.label}: is not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{place.label}: is nested too deeply, or an alias stands in its own value") from None


def read_value(text: str, place: Place) -> Node:
    """A text from outside a file as a YAML value that keeps its text: an override, an environment variable."""
    if not text:
        return Node("", place)  # `-o model.reasoning_effort=` says empty, `=null` says not set
    try:
        node = read_text(text, place)
    except ConfigError:
        return Node(text, place, text)  # no YAML: text as it stands, such as a path with a colon
    quoted = isinstance(node.value, str) and node.text is None  # 'no' in quotes is the word without them
    return node if quoted else evolve(node, text=text)


def _at(place: Place, mark: Any) -> Place:
    return evolve(place, line=mark.line + 1, column=mark.column + 1) if mark and place.line else place


def _node(composed: Any, place: Place) -> Node:
    here = _at(place, composed.start_mark)
    if composed.tag.removeprefix(_TAG) not in _KINDS:
        raise ConfigError(f"{here}: the tag {composed.tag.replace(_TAG, '!!')} is not supported; write plain YAML")
    if isinstance(composed, yaml.ScalarNode):
        return _scalar(composed, here)
    if isinstance(composed, yaml.SequenceNode):
        return Node(tuple(_node(item, place) for item in composed.value), here)
    found: dict[str, Node] = {}
    for key, value in composed.value:
        here_key = _at(place, key.start_mark)
        if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "null":
            raise ConfigError(f"{here_key}: a key must be a word")
        if key.value in found:
            line = found[key.value].where.line
            raise ConfigError(f"{here_key}: the key {key.value!r} stands here and in line {line}; delete one of them")
        found[key.value] = evolve(_node(value, place), key=here_key)
    return Node(found, here)


def _scalar(composed: Any, here: Place) -> Node:
    kind, text = composed.tag.removeprefix(_TAG), composed.value
    if composed.style in ("'", '"', "|", ">") and kind == "str":
        return Node(text, here)
    # `2:1:7` and `12:30` are meant as they stand, not as numbers to the base of 60
    if kind in ("null", "bool", "int", "float") and ":" not in text:
        try:
            return Node(yaml.constructor.SafeConstructor().construct_object(composed), here, text)
        except ValueError as error:  # such as `!!int many`
            raise ConfigError(f"{here}: {text!r} cannot be read: {error}") from None
    return Node(float(text) if _FLOAT.fullmatch(text) else text, here, text)
