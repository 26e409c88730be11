"""From a file, a packaged name or a mapping to one merged node tree, and from `-o` texts to overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from skillopt_kernel.config.layers import in_sections
from skillopt_kernel.config.packaged import PREFIX, candidates, find_packaged, package_path, packaged_names
from skillopt_kernel.config.reading import read_file, read_value
from skillopt_kernel.config.tree import Node, Place, from_python, merge
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.plugins.known import distribution_of

BASE = "_base_"

Override = tuple[str, Node]
"""The dotted key, or a name outside any section as in a flat file, and the value."""


@frozen
class Loaded:
    """A merged configuration. `name` is the file's stem or the packaged name; `path` is `None` for a mapping."""

    root: Node
    name: str
    path: Path | None
    warnings: tuple[str, ...]


def load(source: str | Path | Mapping[str, Any]) -> Loaded:
    """Read `source` with its bases. Raises `ConfigError` for anything that cannot be found or read."""
    warnings: list[str] = []
    if isinstance(source, Mapping):
        root = from_python(source, Place("the mapping given", folder=Path.cwd()))
        return Loaded(_with_bases(root, 0, (), warnings), "configuration", None, tuple(warnings))
    path, label = _find(str(source), Place("command line"), str(source))
    name = str(source) if label.endswith(f"/configs/{source}.yaml") else path.stem
    return Loaded(_read(path, label, 0, (), warnings), name, path, tuple(warnings))


def _find(text: str, place: Place, where: str) -> tuple[Path, str]:
    """The file that a path, a `package:` path or a packaged name stands for, and its label."""
    tried = candidates(text, place, where)
    for path in tried:
        if path.is_file():
            return path, text if text.startswith(PREFIX) else _shown(path)
    named = find_packaged(text, where)
    if named is not None:
        return package_path(named), named
    names = list(packaged_names())
    near = nearest(text, names)
    carrier = distribution_of("env", "searchqa" if text == "demo" else text)
    raise ConfigError(
        f"{where}: there is no file {' nor '.join(map(str, tried))}, and no configuration of that name. "
        + (f"It comes with an environment: pip install {carrier}. " if carrier else "")
        + (f"Did you mean {near!r}? " if near else "")
        + f"Packaged: {', '.join(names)}."
    )


def _shown(path: Path) -> str:
    """A path as messages name it: relative to the working directory where it lies below, else whole."""
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(path)


def _read(path: Path, label: str, depth: int, above: tuple[Path, ...], warnings: list[str]) -> Node:
    return _with_bases(read_file(path, label, depth), depth, (*above, path.resolve()), warnings)


def _with_bases(root: Node, depth: int, above: tuple[Path, ...], warnings: list[str]) -> Node:
    own = in_sections(evolve(root, value={key: item for key, item in root.value.items() if key != BASE}), warnings)
    named = root.value.get(BASE)
    if named is None or named.empty:
        return own
    merged = Node({}, root.place)
    for item in named.value if isinstance(named.value, tuple) else (named,):
        where = f"{item.where}: {BASE}"
        if not isinstance(item.value, str):
            raise ConfigError(f"{where}: expected a path, a packaged name or a list of them")
        path, label = _find(item.value, item.place, f"{where}: {item.value}")
        if path.resolve() in above:
            chain = " -> ".join(_shown(each) for each in (*above, path))
            raise ConfigError(f"{where}: the files inherit from each other in a circle: {chain}")
        merged = merge(merged, _read(path, label, depth + 1, above, warnings))
    return merge(merged, own)


def parse_overrides(given: Sequence[str | Override]) -> list[Override]:
    """Read `section.key=value` texts; a `flag` stands as it is. Raises `ConfigError` naming all of another form.

    A value is read as a YAML scalar or flow collection, and keeps its text; a key that takes text uses the text
    as it stands, so that a model named `1e10` or `no` stays what it is.
    """
    place = Place("-o", depth=-1)
    found, problems = [], []
    for text in given:
        if not isinstance(text, str):
            found.append(text)
            continue
        key, equals, value = text.partition("=")
        if equals and all(key.strip().split(".")):
            found.append((key.strip(), read_value(value.strip(), place)))
        else:
            shown = key.strip() if equals else text  # a value may be a credential
            problems.append(f"-o {shown}: expected section.key=value, such as train.batch_size=8")
    if problems:
        raise ConfigError(*problems)
    return found


def flag(name: str, key: str, value: str) -> Override:
    """The override that a flag of its own stands for; messages name the flag: "--num_epochs: train.num_epochs: ..."."""
    return key, read_value(value, Place(name, depth=-1))


def overrides_of(values: Mapping[str, Any], origin: str) -> list[Override]:
    """The overrides that a plugin returns, `{"train.batch_size": 20}`; sections may be nested mappings."""
    place = Place(origin, folder=Path.cwd(), depth=-1)
    return [(str(key), from_python(value, place)) for key, value in values.items()]
