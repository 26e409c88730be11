"""Files that grow by one JSON object a line: a line is committed once its newline is in the file.

A process killed while it writes leaves a torn last line. Readers leave it out, and a writer cuts it off before
it goes on, so that no line is ever joined to half of another.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import make_folder, open_private, writing

_log = logging.getLogger(__name__)
_BLOCK = 1 << 16


class Journal:
    """The one writer of a file of lines. Not thread-safe: its owner has a lock or a thread of its own.

    Each line is one write to the operating system, so that it survives the death of the process; `sync` makes it
    survive the loss of power.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        with writing(path):
            self._handle = open(path, "ab", buffering=0, opener=open_private)  # noqa: SIM115 - open until `close`
            self.size = complete_size(path)
            if self.size != self._handle.tell():
                self._handle.truncate(self.size)

    def append(self, line: bytes) -> int:
        """Add a line (newline included) and return the offset at which it begins."""
        offset = self.size
        with writing(self.path):
            try:
                written = self._handle.write(line)
                while written < len(line):
                    written += self._handle.write(line[written:])
            except OSError:
                # A full disk takes a part of a line. Without it the file is whole again.
                self._handle.truncate(offset)
                raise
        self.size = offset + len(line)
        return offset

    def sync(self) -> None:
        with writing(self.path):
            os.fsync(self._handle.fileno())

    def close(self) -> None:
        self._handle.close()


def complete_size(path: Path) -> int:
    """Bytes up to and including the last newline, found from the end of the file."""
    return path.stat().st_size - len(next(_pieces_from_end(path)))


def last_lines(path: Path, count: int) -> list[dict[str, Any]]:
    """The last `count` complete, undamaged lines in their order, without reading the whole of a long file."""
    if not path.is_file():
        return []
    pieces = _pieces_from_end(path)
    next(pieces)
    rows = (row for piece in pieces if (row := parse_line(piece)) is not None)
    return list(islice(rows, count))[::-1]


def _pieces_from_end(path: Path) -> Iterator[bytes]:
    """What lies between the newlines, from the end: first what is torn (or empty), then each line without its own."""
    with path.open("rb") as handle:
        end = handle.seek(0, os.SEEK_END)
        rest = b""
        while end > 0:
            begin = max(0, end - _BLOCK)
            handle.seek(begin)
            # The first piece may be the end of a line that begins further up.
            rest, *whole = (handle.read(end - begin) + rest).split(b"\n")
            yield from reversed(whole)
            end = begin
        yield rest


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each complete line's offset and JSON object; nothing when there is no file.

    A damaged line is passed over with a warning that names file and line.
    """
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunDirectoryError(f"cannot read {path}: {error.strerror or error}.") from error
    with handle:
        offset = 0
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            value = parse_line(line)
            if value is not None:
                yield offset, value
            else:
                _log.warning("%s:%d: a damaged line was passed over", path, number)
            offset += len(line)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object of one line, or `None` when there is none in it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
