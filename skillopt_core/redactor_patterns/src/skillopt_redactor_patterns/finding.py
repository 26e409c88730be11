"""The finder that the plugin makes: the general patterns and the formats of known providers together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillopt_redactor_patterns.formats import KnownFormats
from skillopt_redactor_patterns.general import GeneralPatterns


class SecretPatterns:
    """A `SecretFinder`. Takes no settings; may be called from many threads at once."""

    def __init__(self, settings: Any = None, context: Any = None) -> None:
        self._finders = (GeneralPatterns(), KnownFormats())

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """As `SecretFinder.find`. Neither order nor overlaps matter to who replaces them."""
        for finder in self._finders:
            yield from finder.find(text)
