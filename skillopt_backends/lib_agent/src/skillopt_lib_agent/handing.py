"""Secrets handed on by pipes, for programs that can read them there: no variable and no file of theirs holds them.

What such a program starts inherits its variables, and what a model runs can print them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

BY_PIPE = os.name == "posix"
"""Whether this system can hand on open files by their number."""


@contextlib.contextmanager
def handed_on(secrets: Mapping[str, str]) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    """Variable -> the number of a pipe that its secret is read from, and those numbers; closed here at the end.

    secrets  variable -> text of at most a few thousand characters: a pipe holds that much unread
    """
    numbers: dict[str, int] = {}
    try:
        for variable, secret in secrets.items():
            numbers[variable], written = os.pipe()
            with os.fdopen(written, "wb") as pipe:
                pipe.write(secret.encode("utf-8"))
        yield {variable: str(number) for variable, number in numbers.items()}, tuple(numbers.values())
    finally:
        for number in numbers.values():
            os.close(number)
