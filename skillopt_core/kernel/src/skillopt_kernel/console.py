"""Everything that reaches a terminal goes through here; nothing else prints."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from skillopt_kernel.errors import SkillOptError


def echo(text: str = "") -> None:
    """Write a line to standard output. Characters that the console's encoding lacks are replaced, never fatal.

    Where nobody reads any more, what is written is dropped. Raises `SkillOptError`, once, where it cannot be written
    for another reason, such as a full disk.
    """
    _write(sys.stdout, f"{text}\n")


def error(text: str) -> None:
    """Write a line to standard error, without what looks like a credential. Where that fails nobody could be told."""
    from skillopt_kernel.store.patterns import redact_diagnostics

    with suppress(SkillOptError):
        _write(sys.stderr, f"{redact_diagnostics(text)}\n")


def flush() -> None:
    """Write what a display has left in standard output; what cannot be written is dropped.

    Python itself would try once more when the process ends, and make its exit code 120.
    """
    with suppress(SkillOptError):
        _write(sys.stdout, "")


class LogLines(logging.Handler):
    """Writes what is logged as lines of their own, as `error` does."""

    def emit(self, record: logging.LogRecord) -> None:
        error(self.format(record))


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # the process was begun with it closed
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, errors="replace").decode(encoding))
        stream.flush()
    except OSError as failure:
        # What could not be written stays in the stream's buffer, and would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if failure.errno not in (errno.EPIPE, errno.EIO):  # the reader has ended, the terminal has gone
            sentence = f"cannot write the output: {failure.strerror}. Free the space, or send it somewhere else."
            raise SkillOptError(sentence) from failure


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
