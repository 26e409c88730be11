"""Libraries that only some scorers need: told with the line that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skillopt_kernel.errors import ConfigError


@contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Imports inside need the extra. Raises `ConfigError` with its `pip install` line."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"{what} need a library that is not installed ({error.name}). Install it with "
            f"`pip install 'skillopt-scorers[{extra}]'`, or choose another scorer."
        ) from error
