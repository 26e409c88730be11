"""What looks like a credential whoever gave it: headers, named values, prefixes, logins in addresses, private keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files

SHORTEST_TEXT = 12
"""Characters. A shorter text has no room for a credential and what tells that it is one."""


class GeneralPatterns:
    """A `SecretFinder` by the patterns of `general.toml`."""

    def __init__(self) -> None:
        told = tomllib.loads(files(__package__).joinpath("general.toml").read_text("utf-8"))
        parts = told.pop("parts")

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(re.sub(r"{([a-z]+)}", lambda part: parts[part[1]], pattern), re.VERBOSE)

        self._patterns = {name: compiled(each["pattern"]) for name, each in told.items()}
        self._marks = [(mark, name) for name, each in told.items() for mark in each["marks"]]

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """As `SecretFinder.find`."""
        if len(text) < SHORTEST_TEXT:
            return
        # So that places are the same in both: of all characters, only this one has a longer lower case.
        lowered = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
        for name in {name: None for mark, name in self._marks if mark in lowered}:
            for match in self._patterns[name].finditer(lowered):
                yield (*match.span(1), name)
