"""One plugin loaded through stevedore, without its disk cache."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from stevedore.driver import DriverManager


class _OneDriver(DriverManager[Any]):
    """A `DriverManager` that is told the entry point.

    stevedore's own listing comes from a cache on disk that can serve entry points of before the last edit.
    The caller has scanned the metadata afresh and has ruled out two entry points of one name.
    """

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry
        super().__init__(entry.group, entry.name, on_load_failure_callback=_raise)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._entry]


def _raise(manager: object, entry: EntryPoint, error: BaseException) -> None:
    raise error


def select(entry: EntryPoint) -> object:
    """The object that the entry point names. What its import raises passes unchanged."""
    return _OneDriver(entry).extensions[0].plugin
