"""From a file, a packaged name or a mapping to one merged node tree: `_base_` resolved, the child over its bases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from skillopt_kernel.config import packaged
from skillopt_kernel.config.reading import read_file
from skillopt_kernel.config.tree import Node, Place, from_python, merge
from skillopt_kernel.errors import ConfigError

BASE = "_base_"


@frozen
class Loaded:
    """A merged configuration. `name` is the file's stem or the packaged name; `path` is `None` for a mapping."""

    root: Node
    name: str
    path: Path | None


def load(source: str | Path | Mapping[str, Any]) -> Loaded:
    """Read `source` with its bases. Raises `ConfigError` for anything that cannot be found or read."""
    if isinstance(source, Mapping):
        root = from_python(source, Place("mapping", "the mapping given", folder=Path.cwd()))
        return Loaded(_with_bases(root, 0, ()), "configuration", None)
    path, label, name = _find_source(str(source))
    return Loaded(_read(path, label, 0, ()), name, path)


def _find_source(text: str) -> tuple[Path, str, str]:
    if text.startswith(packaged.PREFIX):
        path = packaged.package_path(text)
        return path, text, path.stem
    path = Path(text).expanduser()
    if path.is_file():
        return path.resolve(), shown(path), path.stem
    named = packaged.find_packaged(text)
    if named is not None:
        return packaged.package_path(named), named, text
    from skillopt_kernel.plugins.errors import nearest

    names = list(packaged.packaged_names())
    near = nearest(text, names)
    hint = f"Did you mean {near!r}? " if near else ""
    what = "is a folder" if path.is_dir() else "there is no such file"
    raise ConfigError(f"{text}: {what}, and no configuration of that name. {hint}Packaged: {', '.join(names)}.")


def shown(path: Path) -> str:
    """A path as messages name it: relative to the working directory where it lies below, else whole."""
    whole = path.resolve()
    return whole.relative_to(Path.cwd()).as_posix() if whole.is_relative_to(Path.cwd()) else str(whole)


def _read(path: Path, label: str, depth: int, above: tuple[Path, ...]) -> Node:
    return _with_bases(read_file(path, label, depth), depth, (*above, path.resolve()))


def _with_bases(root: Node, depth: int, above: tuple[Path, ...]) -> Node:
    named: Node | None = root.value.get(BASE)
    own = evolve(root, value={key: item for key, item in root.value.items() if key != BASE})
    if named is None or named.empty:
        return own
    merged: Node | None = None
    for item in named.value if isinstance(named.value, tuple) else (named,):
        if not isinstance(item.value, str):
            raise ConfigError(f"{item.where}: {BASE}: expected a path, a packaged name or a list of them")
        path, label = _find_base(item)
        if path.resolve() in above:
            chain = " -> ".join(shown(each) for each in (*above, path))
            raise ConfigError(f"{item.where}: {BASE}: the files inherit from each other in a circle: {chain}")
        layer = _read(path, label, depth + 1, above)
        merged = layer if merged is None else merge(merged, layer)
    return own if merged is None else merge(merged, own)


def _find_base(item: Node) -> tuple[Path, str]:
    text, where = item.value, f"{item.where}: {BASE}"
    if text.startswith(packaged.PREFIX):
        return packaged.package_path(text, where), text
    tried = candidates(text, item.place)
    for path in tried:
        if path.is_file():
            return path, _base_label(path, item.place)
    named = packaged.find_packaged(text, where)
    if named is not None:
        return packaged.package_path(named), named
    raise ConfigError(
        f"{where}: {text!r} is neither {' nor '.join(str(path) for path in tried)}, nor a packaged name "
        f"({', '.join(packaged.packaged_names())})"
    )


def _base_label(path: Path, place: Place) -> str:
    """A base beside a packaged file is named as that file is; any other one by its path."""
    if place.label.startswith(packaged.PREFIX) and place.folder is not None:
        folder = place.label.rpartition("/")[0]
        if path.resolve().parent == place.folder.resolve():
            return f"{folder}/{path.name}"
    return shown(path)


def candidates(text: str, place: Place) -> list[Path]:
    """Where a path written at `place` is looked for: beside that file, then in the working directory."""
    path = Path(text).expanduser()
    folders = [place.folder, Path.cwd()] if place.folder else [Path.cwd()]
    return list(dict.fromkeys((folder / path).resolve() for folder in folders))
