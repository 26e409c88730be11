"""Files that many jobs only read: copied once, linked into each workspace, and looked at again when a job ends.

A corpus of a gigabyte would else be written and deleted again for each attempt. What is linked is a copy of our own
without the right to write, never the user's file, so that nothing a program does can reach that.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from skillopt_kernel.errors import EnvironmentFailure

from skillopt_lib_agent.temporary import temporary_folder
from skillopt_lib_agent.workspace import lay_file, lay_files

MOST_SHARED = 4_000_000_000
"""Bytes of copies that are kept at most; what comes after is copied into each workspace."""

READ_ONLY = 0o444


@frozen
class Copy:
    """A copy that is linked, and what it was when it was made. changed: its time in ns."""

    path: Path
    size: int
    changed: int

    def as_it_was(self) -> bool:
        """Whether nobody has written to it."""
        state = self.path.stat()
        return (state.st_size, state.st_mtime_ns) == (self.size, self.changed)


@define(eq=False)
class SharedFiles:
    """The copies of one run. Used from many threads at once."""

    _folder: Path | None = field(init=False, default=None)
    _ending: ExitStack = field(init=False, factory=ExitStack)
    _copies: dict[tuple[str, int, int], Copy] = field(init=False, factory=dict)
    _made: int = field(init=False, default=0)
    _size: int = field(init=False, default=0)
    _lock: Any = field(init=False, factory=threading.Lock)

    @contextmanager
    def laid(self, folder: Path, files: Mapping[str, bytes | Path], *, edits: bool) -> Iterator[None]:
        """Lay files into a workspace for the time of a job, which owns them if it `edits`.

        Raises `EnvironmentFailure` as `lay_files` does, and at the end where a file that others read was written to.
        """
        shared = {} if edits else {name: each for name, each in files.items() if isinstance(each, Path)}
        lay_files(folder, {name: each for name, each in files.items() if name not in shared})
        used = {name: copy for name, source in shared.items() if (copy := self._laid(folder, name, source))}
        yield
        for name, copy in used.items():
            with suppress(FileNotFoundError):  # the run is over
                if not copy.as_it_was():
                    raise EnvironmentFailure(
                        f"the agent program wrote to {name!r}, which other attempts read at the same time, although it "
                        f"was to change no file. This attempt does not count; later ones get the file as it was."
                    )

    def close(self) -> None:
        """Delete the copies; files that are laid later are copied each."""
        with self._lock:
            self._copies.clear()
            self._size = MOST_SHARED
            self._ending.close()

    def _laid(self, folder: Path, name: str, source: Path) -> Copy | None:
        """Link a file's copy into a workspace; `None` where that cannot be, and the file was copied there."""
        copy = self._copy(source)
        if copy is not None:
            with suppress(OSError):  # another disk, or one that knows no links
                lay_file(folder, name, lambda path: os.link(copy.path, path))
                return copy
        lay_files(folder, {name: source})
        return None

    def _copy(self, source: Path) -> Copy | None:
        try:
            state = source.stat()
            key = (str(source), state.st_size, state.st_mtime_ns)
            with self._lock:
                known = self._copies.get(key)
                if known is not None and known.as_it_was():
                    return known
                if self._size + state.st_size > MOST_SHARED:
                    return None
                copy = self._copies[key] = self._new(source)
                self._size += copy.size
                return copy
        except OSError:  # no such file, or no room for a copy: laying it tells which
            return None

    def _new(self, source: Path) -> Copy:
        if self._folder is None:
            self._folder = self._ending.enter_context(temporary_folder("shared"))
        # Each has a name of its own: jobs that run are held to the copy that they were given.
        path = self._folder / str(self._made)
        self._made += 1
        shutil.copyfile(source, path)
        path.chmod(READ_ONLY)
        state = path.stat()
        return Copy(path, state.st_size, state.st_mtime_ns)
