"""One writer: the lock of a run directory, which names the process that holds it.

The lock is the operating system's, so that it falls when its process dies, however that happens. The record
beside it (`run.lock.json`) only says who holds it.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import make_folder, now, read_object, write_json, writing

LOCK = "run.lock"
HOLDER = "run.lock.json"
_log = logging.getLogger(__name__)


class RunLock:
    """Held within a `with` block. One process, one object, one holder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> RunLock:
        """Take the lock. Raises `RunDirectoryError` naming who holds it."""
        import socket

        from filelock import FileLock, Timeout

        make_folder(self.folder)
        # A viewer that looks whether the lock is held has it for a moment.
        self._lock = FileLock(self.folder / LOCK, timeout=0.3, thread_local=False)
        with writing(self.folder / LOCK):
            try:
                self._lock.acquire()
            except Timeout:  # an OSError, too, but not one of writing
                held = _record(self.folder)
                raise RunDirectoryError(
                    f"the run directory {self.folder} is in use by process {held.get('pid')} on {held.get('host')} "
                    f"(since {held.get('since')}). Wait until it has ended, or choose another folder (--out, --fresh)."
                ) from None
        here, left = socket.gethostname(), _record(self.folder)
        if left.get("host", here) != here:  # machines that share a folder may not see each other's locks
            told = (
                "%s was held by process %s on %s. Its lock is free, so this run goes on; should that one run, stop it."
            )
            _log.warning(told, self.folder, left.get("pid"), left["host"])
        write_json(self.folder / HOLDER, {"pid": os.getpid(), "host": here, "since": now()})
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # where it must stay, the lock is free all the same
            (self.folder / HOLDER).unlink()
        self._lock.release()


def holder(folder: Path) -> dict[str, Any] | None:
    """Who holds a directory's lock (`pid`, `host`, `since`), or `None` when nobody does. Changes nothing."""
    from filelock import FileLock

    if not (folder / HOLDER).is_file() or not (folder / LOCK).is_file():
        return None
    try:
        with FileLock(folder / LOCK, timeout=0):
            return None  # its process was killed and left its record
    except OSError:  # held, or not ours to open: say what is written
        return _record(folder)


def _record(folder: Path) -> dict[str, Any]:
    try:
        return read_object(folder / HOLDER)
    except RunDirectoryError:
        return {}  # not written yet, or gone
