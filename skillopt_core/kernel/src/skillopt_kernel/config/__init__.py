"""The configuration: YAML files with `_base_`, overrides, typed sections, and where every value came from.

config = load_config("searchqa", ["train.batch_size=8"])
config.train.batch_size, config.backends["target"].model, config.origins["train.batch_size"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillopt_kernel.config.resolved import Config

_HOMES = {
    "Config": "resolved",
    "DriverChoice": "resolved",
    "BackendChoice": "resolved",
    "option": "fields",
    "at_least": "fields",
    "above": "fields",
    "between": "fields",
    "description": "fields",
    "is_secret": "fields",
    "default_of": "fields",
    "packaged_names": "packaged",
}

__all__ = ["load_config", *_HOMES]


def load_config(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read and resolve a configuration.

    source     a file, a packaged name ("searchqa"), or a mapping of sections
    overrides  "section.key=value", later ones over earlier ones, all over the file
    environ    environment variables for backends' settings; the process's own when left out

    Nearest wins: overrides, the file, its `_base_` files, the environment (backends' settings only), defaults.
    Raises `ConfigError`, whose `problems` are sentences with file, line, column and key.
    """
    from skillopt_kernel.config.build import Request, build, default_environ
    from skillopt_kernel.config.load import load
    from skillopt_kernel.config.overrides import parse

    found = parse(overrides)
    return build(Request(load(source), found, default_environ() if environ is None else environ))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
