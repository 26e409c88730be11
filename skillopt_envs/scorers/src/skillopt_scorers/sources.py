"""The source files of a function that a configuration names, so that a changed one is noticed. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path


def sources_of(function: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The module of `package.module:name`, and what it imports from `folders`, sorted: of packages all files.

    Of a module that lies elsewhere, in what is installed, its own file alone; nothing where it is not found or is no
    Python source.
    """
    module = function.partition(":")[0]
    places = list(map(str, folders))
    found: set[Path] = set()
    waiting = [module.partition(".")[0]]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for file in _files(name, places):
            found.add(file)
            waiting += _imported(file)
    return tuple(sorted(found)) or tuple(_installed(module))


def _files(name: str, places: list[str]) -> list[Path]:
    """The files of a top-level module, or of a package, in one of these folders."""
    spec = PathFinder.find_spec(name, places) if places else None
    if spec is None:
        return []
    locations = spec.submodule_search_locations
    if locations is not None:
        return [file for location in locations for file in sorted(Path(location).rglob("*.py"))]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def _imported(file: Path) -> Iterator[str]:
    """The top-level names that a file imports; none of one that cannot be read, which importing it will tell."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _installed(module: str) -> Iterator[Path]:
    """The file of a module that is installed, without an import of the packages that it lies in."""
    places: list[str] | None = None
    name, spec = "", None
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, places)
        if spec is None:
            return
        places = list(spec.submodule_search_locations or ())
    if spec is not None and spec.origin and spec.origin.endswith(".py"):
        yield Path(spec.origin)
