"""Texts made short, for tables, reports and feedback."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_kernel.store.patterns import clipped

LONGEST_DESCRIPTION = 100


def one_line(text: str, longest: int = LONGEST_DESCRIPTION) -> str:
    """`text` on one line of at most `longest` characters, which ends with "..." where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= longest else clipped(line, longest - 3) + "..."


def few_of(names: Sequence[str], most: int = 3) -> str:
    """The first of these names, and how many more there are: "a, b, c and 4 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
