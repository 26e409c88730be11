"""Files of a run directory: replaced whole or not at all, or growing by whole lines; errors name the file.

A file that is replaced is written beside itself, synced and renamed, so that a process killed at any moment
leaves the old text or the new one. A file that grows has one JSON object a line; a line is committed once its
newline is in the file. A process killed while it writes leaves a torn last line: readers leave it out, and a
writer cuts it off before it goes on, so that no line is ever joined to half of another.

Files are private to their owner (0600, folders 0700): they hold prompts.
Text is UTF-8 with the newlines that it was given.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError

_log = logging.getLogger(__name__)
_BLOCK = 1 << 16

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def now() -> str:
    """The time in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn an `OSError` while `path` is written into a `RunDirectoryError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise refused(path, error.strerror or error) from error


def refused(path: Path | str, reason: object) -> RunDirectoryError:
    """The error for what the system does not let us write, or read."""
    return RunDirectoryError(
        f"cannot write {path}: {reason}. Free the space, correct the permissions, move what is in the way, or choose "
        f"another folder (--out). What was saved is intact: run the same command again."
    )


def make_folder(path: Path) -> None:
    """Make `path` and what is missing above it, private to its owner."""
    with writing(path):
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def require(path: Path) -> None:
    """Raise `RunDirectoryError` when a file is no longer there that this process has made."""
    with writing(path):
        if path.exists():
            return
    raise RunDirectoryError(
        f"{path} is no longer there: the run directory was moved or deleted while the run went on, and nothing more "
        f"is written. Move it back and run the same command again; if it is gone, that begins anew."
    )


def _private(path: str | Path, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def write_new(path: Path | str, data: bytes) -> None:
    """Write a file that nothing refers to yet, into a folder that is there: not synced, not renamed into place."""
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), FILE_MODE)
        try:
            _write_all(descriptor, data)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` in the place of `path`: beside, sync, rename. Makes missing folders.

    What a killed process left beside has the same name, so that the one that goes on takes it away.
    """
    make_folder(path.parent)
    beside = path.with_name(f".{path.name}.tmp")
    with writing(path):
        try:
            with open(beside, "wb", opener=_private) as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`. Newlines stay as they are; what UTF-8 cannot express (half a surrogate pair) becomes `?`."""
    write_bytes(path, text.encode("utf-8", errors="replace"))


def write_json(path: Path, value: Any) -> None:
    """As `write_bytes`, indented. Raises `ValueError` for NaN and infinities, `TypeError` for other objects."""
    write_bytes(path, _utf8(value, json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)))


def write_json_lines(path: Path, values: Iterable[Any]) -> None:
    """Replace a whole file of one JSON value a line."""
    write_bytes(path, b"".join(json_line(value) for value in values))


def json_line(value: Any) -> bytes:
    """One line of compact JSON in UTF-8, newline included. Errors as `write_json`."""
    return _utf8(value)


def json_list(values: Iterable[Any]) -> bytes:
    """A JSON array with one element a line: quick to write, easy to compare."""
    return b"[\n" + b",\n".join(json_line(value).rstrip(b"\n") for value in values) + b"\n]\n"


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _utf8(value: Any, encoder: json.JSONEncoder = _COMPACT) -> bytes:
    text = encoder.encode(value)
    # Half a surrogate pair in a model's reply becomes the escape that JSON has for it, and reads back the same.
    return f"{text}\n".encode(errors="backslashreplace")


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, newlines as they are. Raises `RunDirectoryError` naming file and reason."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        sentence = f"cannot read {path}: {reason}. Restore the file, or start again beside it with --fresh."
        raise RunDirectoryError(sentence) from error


def read_json(path: Path) -> Any:
    """The JSON value of a file. Raises `RunDirectoryError` naming file, line and reason."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(
            f"{path}: this is not valid JSON ({error}). The file was changed or damaged from outside; restore it, or "
            f"start again with --fresh."
        ) from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file. Raises `RunDirectoryError` naming the file."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path}: this must be a JSON object. Restore the file, or start again with --fresh.")
    return value


# Files that grow by a line ---------------------------------------------------------------------------------


class Journal:
    """The one writer of a file of lines. Not thread-safe: its owner has a lock or a thread of its own.

    Each line is one write to the operating system, so that it survives the death of the process; `sync` makes it
    survive the loss of power.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        with writing(path):
            self._handle = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115 - open until `close`
            self.size = self._handle.tell() - len(next(_pieces_from_end(path)))
            if self.size != self._handle.tell():
                self._handle.truncate(self.size)

    def append(self, line: bytes) -> int:
        """Add a line (newline included) and return the offset at which it begins."""
        offset = self.size
        with writing(self.path):
            try:
                _write_all(self._handle.fileno(), line)
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
    if not path.is_file():
        return
    offset = 0
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            row = parse_line(line)
            if row is None:
                _log.warning("%s:%d: a damaged line was passed over", path, number)
            else:
                yield offset, row
            offset += len(line)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object of one line, or `None` when there is none in it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# Names -----------------------------------------------------------------------------------------------------

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_WINDOWS_DEVICES = {"con", "prn", "aux", "nul"} | {f"{name}{digit}" for name in ("com", "lpt") for digit in range(10)}
_LONGEST_NAME = 80


def safe_name(identifier: str) -> str:
    """`identifier` as the name of a file or folder on every system, at most 80 characters.

    Characters outside `[A-Za-z0-9_.-]` become `_`; dots at the ends and names of Windows devices are avoided.
    Where anything was changed, six hex digits of the identifier's SHA-256 keep two identifiers apart. Names that
    differ only by case are kept apart where they are used (`OutcomeStore`).
    """
    name = _UNSAFE.sub("_", identifier).strip(".")
    if name.split(".")[0].lower() in _WINDOWS_DEVICES:
        name = f"_{name}"
    if name == identifier and 0 < len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(identifier.encode("utf-8", errors="surrogatepass")).hexdigest()[:6]
    return f"{name[: _LONGEST_NAME - 7] or 'item'}-{digest}"
