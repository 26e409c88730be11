"""The configuration: YAML files with `_base_`, overrides, typed sections, and where every value came from.

config = load_config("searchqa", ["train.batch_size=8"])
config.train.batch_size, config.backends["target"].model, config.origins["train.batch_size"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt_kernel.config.fields import above, at_least, between, default_of, description, is_secret, option
from skillopt_kernel.config.packaged import packaged_names
from skillopt_kernel.config.resolved import BackendChoice, Config, DriverChoice

__all__ = [
    "BackendChoice", "Config", "DriverChoice", "above", "at_least", "between", "default_of", "description",
    "is_secret", "load_config", "option", "packaged_names",
]  # fmt: skip


def load_config(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str | tuple[str, Any]] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read and resolve a configuration.

    source     a file, a packaged name ("searchqa"), or a mapping of sections
    overrides  "section.key=value" (or `load.flag(...)`), later ones over earlier ones, all over the file
    environ    environment variables for backends' settings; the process's own when left out

    Nearest wins: overrides, the file, its `_base_` files, the environment (backends' settings only), defaults.
    Raises `ConfigError`, whose `problems` are sentences with file, line, column and key.
    """
    from skillopt_kernel.config.build import build
    from skillopt_kernel.config.load import load, parse_overrides

    return build(load(source), parse_overrides(overrides), dict(os.environ if environ is None else environ))
