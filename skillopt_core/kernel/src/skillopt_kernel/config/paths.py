"""Paths in a configuration: looked for beside the file that names them, then in the working directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from skillopt_kernel.config import packaged
from skillopt_kernel.config.load import candidates
from skillopt_kernel.config.tree import Node, at
from skillopt_kernel.errors import ConfigError

if TYPE_CHECKING:
    from skillopt_kernel.config.build import Draft


def resolve_paths(draft: Draft, value: Any, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
    """`value` with every `Path` in it resolved as the field's metadata `path` says; other values unchanged.

    A text field that says what its path is ("input", "lazy", "output") is treated alike and stays a text.
    """
    how = field.metadata.get("path", "input")
    if isinstance(value, Path) or (isinstance(value, str) and value and "path" in field.metadata):
        draft.written[key] = _written(node)
        if how == "output":
            found = (Path.cwd() / Path(_written(node)).expanduser()).resolve()
        else:
            found = input_path(draft, node, key, must_exist=how == "input")
        return found if isinstance(value, Path) else str(found)
    if isinstance(value, list | tuple):
        return type(value)(
            resolve_paths(draft, item, at(node, (index,)), field, f"{key}[{index}]") for index, item in enumerate(value)
        )
    if isinstance(value, dict) and any(isinstance(item, Path) for item in value.values()):
        return {
            name: resolve_paths(draft, item, at(node, (name,)), field, f"{key}[{name}]") for name, item in value.items()
        }
    return value


def input_path(draft: Draft, node: Node, key: str, must_exist: bool = True) -> Path:
    """The file or folder that a node names. A missing one is a problem, or a warning when it need not exist yet."""
    text = _written(node)
    if text.startswith(packaged.PREFIX):
        try:
            return packaged.package_path(text, f"{node.where}: {key}")
        except ConfigError as error:
            draft.problems.extend(error.problems)
            return Path(text)
    tried = candidates(text, node.place)
    for path in tried:
        if path.exists():
            return path
    sentence = f"{node.where}: {key}: {text!r} is not at {' nor at '.join(str(path) for path in tried)}"
    if must_exist:
        draft.problems.append(sentence)
    else:
        draft.warnings.append(sentence)
    return tried[-1]


def _written(node: Node) -> str:
    return node.text if node.text is not None and node.value is not None else str(node.value)
