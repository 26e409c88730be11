"""Everything that reaches a terminal goes through here; nothing else prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO


def echo(text: str = "", *, file: TextIO | None = None) -> None:
    """Write a line. Characters that the console's encoding lacks are replaced, never fatal."""
    stream = file or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, errors="replace").decode(encoding) + "\n")
    stream.flush()


def error(text: str) -> None:
    """Write a line to standard error."""
    echo(text, file=sys.stderr)


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A plain table: columns of numbers right-aligned, no line characters that a console may lack."""
    columns = [[heading, *(row[at] for row in rows)] for at, heading in enumerate(headings)]
    widths = [max(len(cell) for cell in column) for column in columns]
    right = [all(cell[:1] in "-0123456789" for cell in column[1:]) for column in columns]

    def line(cells: tuple[str, ...]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(headings), rule, *(line(row) for row in rows)])


def score(value: float | None) -> str:
    """A score with four decimals, or a dash for none."""
    return "-" if value is None else f"{value:.4f}"
