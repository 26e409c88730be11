"""One writer: the lock of a run directory, which names the process that holds it.

The lock is the operating system's, so that it falls when its process dies, however that happens. The record
beside it (`run.lock.json`) only says who holds it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import FILE_MODE, make_folder, read_json, write_json, writing
from skillopt_kernel.store.outcomes import now

LOCK = "run.lock"
HOLDER = "run.lock.json"

_PATIENCE = 0.3
"""Seconds to wait for the lock: a viewer that looks whether it is held has it for a moment."""

_WRITTEN_PLACES = ("", "*/", "*/*/", "steps/*/*/")
"""Where files are replaced; not in the folders of single attempts, of which there may be very many."""


class RunLock:
    """Held from `acquire` to `release`, or within a `with` block. One process, one object, one holder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: Any = None

    def acquire(self) -> None:
        """Take the lock. Raises `RunDirectoryError` naming who holds it."""
        import socket

        from filelock import FileLock, Timeout

        make_folder(self.folder)
        lock = FileLock(self.folder / LOCK, timeout=_PATIENCE, mode=FILE_MODE, thread_local=False)
        with writing(self.folder / LOCK):
            try:
                lock.acquire()
            except Timeout:  # an OSError, too, but not one of writing
                raise RunDirectoryError(
                    f"the run directory {self.folder} is in use by {_holder_text(self.folder)}. Wait until it has "
                    f"ended, or choose another folder (--out, --fresh)."
                ) from None
        self._lock = lock
        for places in _WRITTEN_PLACES:  # left by a process that was killed between writing and renaming
            for leftover in self.folder.glob(f"{places}.*.tmp"):
                leftover.unlink(missing_ok=True)
        write_json(self.folder / HOLDER, {"pid": os.getpid(), "host": socket.gethostname(), "since": now()})

    def release(self) -> None:
        if self._lock is not None:
            (self.folder / HOLDER).unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(folder: Path) -> dict[str, Any] | None:
    """Who holds a directory's lock (`pid`, `host`, `since`), or `None` when nobody does. Changes nothing."""
    from filelock import FileLock, Timeout

    if not (folder / HOLDER).is_file() or not (folder / LOCK).is_file():
        return None
    lock = FileLock(folder / LOCK, timeout=0, mode=FILE_MODE, thread_local=False)
    try:
        with lock:
            return None  # its process was killed and left its record
    except Timeout:
        return _record(folder)
    except OSError:
        return _record(folder)  # not ours to open: say what is written


def _record(folder: Path) -> dict[str, Any]:
    try:
        record = read_json(folder / HOLDER)
    except RunDirectoryError:
        return {}
    return record if isinstance(record, dict) else {}


def _holder_text(folder: Path) -> str:
    record = _record(folder)
    if not record:
        return "another process"
    return f"process {record.get('pid')} on {record.get('host')} (since {record.get('since')})"
