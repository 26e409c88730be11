"""Temporary folders that no process leaves for good: what a killed one has left, the next one deletes.

A job's folder may hold a copy of what a program signs in with, and the shared files of a run are as large as its data.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "skillopt-agent-"
LOCK = ".in-use"

YOUNG_SECONDS = 60.0
"""A folder this new may not be locked yet."""


@contextlib.contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """A fresh folder, private to this user, below the system's temporary folder or `parent`; deleted at the end."""
    from filelock import FileLock

    delete_leftovers(parent or Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=parent)).resolve()
    try:
        with FileLock(folder / LOCK, thread_local=False):  # the system frees it when this process is killed
            yield folder
    finally:
        delete(folder)


@functools.cache
def delete_leftovers(parent: Path) -> None:
    """Delete the folders below `parent` that no process holds any more; those of others stay. Once a process."""
    from filelock import FileLock, Timeout

    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, Timeout):
            if time.time() - folder.stat().st_mtime > YOUNG_SECONDS:
                with FileLock(folder / LOCK, timeout=0):
                    pass
                delete(folder)


def delete(root: Path) -> None:
    """Delete a folder, also what was made unwritable; what still cannot be deleted stays for the system to clean up."""

    def again(remove: object, path: str, _: object) -> None:
        with contextlib.suppress(OSError):
            Path(path).parent.chmod(0o700)
            if not Path(path).is_symlink():
                Path(path).chmod(0o700)
            if Path(path).is_dir() and not Path(path).is_symlink():
                shutil.rmtree(path)
            else:
                Path(path).unlink()

    for wait in (0.0, 0.05, 0.2, 0.5):  # what was ended behind a wall may write for a moment yet
        time.sleep(wait)
        shutil.rmtree(root, onerror=again)
        if not root.exists():
            return
