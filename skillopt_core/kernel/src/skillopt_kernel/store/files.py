"""Files of a run directory: written whole or not at all, read with an error that names the file.

A file that is replaced is written beside itself, synced and renamed, so that a process killed at any moment
leaves the old text or the new one. Files are private to their owner (0600, folders 0700): they hold prompts.
Text is UTF-8 with the newlines that it was given.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError

FILE_MODE = 0o600
FOLDER_MODE = 0o700

# Made once: `json.dumps` would make one a call, which costs more than encoding a line.
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_INDENTED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)


def now() -> str:
    """The time in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` while `path` is written into a `RunDirectoryError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write {path}: {error.strerror or error}. Free the space, correct the permissions, move what is "
            f"in the way, or choose another folder (--out). What was saved is intact: run the same command again."
        ) from error


def make_folder(path: Path) -> Path:
    """Make `path` and what is missing above it, private to its owner, and return it."""
    with writing(path):
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    return path


def open_private(path: str | Path, flags: int) -> int:
    """An `opener` for `open` that makes new files private to their owner."""
    return os.open(path, flags, FILE_MODE)


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` in the place of `path`: beside, sync, rename. Makes missing folders."""
    make_folder(path.parent)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with open(beside, "wb", opener=open_private) as handle:
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
    write_bytes(path, _utf8(value, _INDENTED))


def write_json_lines(path: Path, values: Iterable[Any]) -> None:
    """Replace a whole file of one JSON value a line."""
    write_bytes(path, b"".join(json_line(value) for value in values))


def json_line(value: Any) -> bytes:
    """One line of compact JSON in UTF-8, newline included. Errors as `write_json`."""
    return _utf8(value, _COMPACT)


def json_list(lines: Iterable[bytes]) -> bytes:
    """A JSON array with one element a line, of what `json_line` made: quick to write, easy to compare."""
    return b"[\n" + b",\n".join(line.rstrip(b"\n") for line in lines) + b"\n]\n"


def _utf8(value: Any, encoder: json.JSONEncoder) -> bytes:
    # Half a surrogate pair in a model's reply becomes the escape that JSON has for it, and reads back the same.
    return f"{encoder.encode(value)}\n".encode(errors="backslashreplace")


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
    except OSError as error:
        raise RunDirectoryError(f"cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise RunDirectoryError(f"cannot read {path}: the byte at offset {error.start} is not UTF-8.") from error


def read_json(path: Path) -> Any:
    """The JSON value of a file. Raises `RunDirectoryError` naming file, line and reason."""
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise RunDirectoryError(
            f"{path}:{error.lineno}: this is not valid JSON ({error.msg}). The file was changed or damaged "
            f"from outside; restore it, or start again with --fresh."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{path}: this JSON cannot be read ({error}).") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file. Raises `RunDirectoryError` naming the file."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path}: this must be a JSON object. Restore the file, or start again with --fresh.")
    return value


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
