"""What looks like a credential, in what people and tools read: found by installed plugins, and replaced.

The plugins (kind `redactor`) see the whole text: of a credential that was cut in half, the half would stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Protocol

from skillopt_kernel.errors import SkillOptError

MARKER = "[redacted]"

Place = tuple[int, int, str]
"""Where in a text a secret begins and ends, and the name of what it looks like."""


class SecretFinder(Protocol):
    """What a redactor plugin makes. Its time is linear in the text, and hex digests and UUIDs are no secrets to it.

    Called from many threads at once, with every text that people or tools read.
    """

    def find(self, text: str) -> Iterable[Place]: ...


@cache
def finders() -> tuple[SecretFinder, ...]:
    """Those of the plugins that are installed. Raises `PluginBroken` and the like for one that cannot be used."""
    from skillopt_kernel.interfaces import DriverContext
    from skillopt_kernel.plugins.discovery import installed, make_driver

    context = DriverContext(logging.getLogger("skillopt"))
    return tuple(make_driver("redactor", plugin.name, None, context) for plugin in installed("redactor"))


def replace_secrets(text: str) -> tuple[str, list[Place]]:
    """The text with a marker for each secret, and what was found where, for whoever has to tell of it or to refuse."""
    found: list[Place] = []
    with suppress(SkillOptError):  # of a broken plugin a run tells before it begins, `skillopt plugins` at any time
        found = sorted(place for finder in finders() for place in finder.find(text))
    parts, done = [], 0
    for start, end, _ in found:
        if start >= done:
            parts += [text[done:start], MARKER]
        done = max(done, end)
    return "".join([*parts, text[done:]]), found


def redact_diagnostics(text: str) -> str:
    """A text for people, without what looks like a credential.

    The whole text, before anything is cut from it. Code that looks for marks of an error reads the raw text in memory.
    """
    return replace_secrets(text)[0]


def clipped(text: str, length: int) -> str:
    """At most `length` characters of a text from which secrets were taken, never ending inside a marker."""
    start = text.rfind(MARKER, max(0, length - len(MARKER) + 1), length + len(MARKER) - 1)  # that the cut would halve
    return text[: length if start < 0 else start]
