"""The folders of one job: made fresh, outside run directory and data, and deleted at its end."""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from attrs import frozen
from skillopt_kernel.errors import EnvironmentFailure

from skillopt_lib_agent.temporary import temporary_folder

MOST_FILES, MOST_BYTES = 1000, 200_000_000
"""Collected of one job at most."""


@frozen
class Place:
    """The folders of one job, all below `root`, which nobody else may enter.

    workspace  where the program works; home: its HOME, with its configuration; scratch: its temporary files
    streams    what it is told and what it says: not shown to the program
    """

    root: Path
    workspace: Path
    home: Path
    scratch: Path
    streams: Path


@contextlib.contextmanager
def fresh_place(parent: Path | None = None) -> Iterator[Place]:
    """Make the folders of a job below the system's temporary folder, and delete them at the end."""
    with temporary_folder("job", parent) as root:
        place = Place(root, *(root / name for name in ("workspace", "home", "scratch", "streams")))
        for folder in (place.workspace, place.home, place.scratch, place.streams):
            folder.mkdir(mode=0o700)
        yield place


def lay_files(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write or copy files into a folder by their relative names. Raises `EnvironmentFailure` for a name outside it."""
    for name, content in files.items():
        if isinstance(content, bytes):
            lay_file(folder, name, partial(Path.write_bytes, data=content))
            continue
        try:
            lay_file(folder, name, partial(shutil.copyfile, content))
        except OSError as error:
            raise EnvironmentFailure(f"the file {name!r} of a task cannot be copied from {content}: {error}") from error


def lay_file(folder: Path, name: str, make: Callable[[Path], object]) -> None:
    """Have `make` make a file in a folder by its relative name. Raises `EnvironmentFailure` for a name outside it."""
    path = folder / _inside(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


def collect(folder: Path, patterns: Sequence[str], besides: Sequence[str] = ()) -> dict[str, bytes]:
    """The regular files that match glob patterns (`**` for any depth), by relative name with `/`, in order of name.

    Links are not followed, since they may lead anywhere. besides: folders that are left out, such as the skill's.
    Raises `EnvironmentFailure` when there is more than a job may leave.
    """
    found: dict[str, bytes] = {}
    size = 0
    matched = {path for pattern in patterns for path in folder.glob(_pattern(pattern))}
    for path in sorted(matched):
        name = path.relative_to(folder).as_posix()
        if any(name == other or name.startswith(f"{other}/") for other in besides) or not _is_own_file(path, folder):
            continue
        size += path.stat().st_size
        if len(found) >= MOST_FILES or size > MOST_BYTES:
            raise EnvironmentFailure(
                f"the job left more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB that match "
                f"{', '.join(patterns)}. Collect by narrower patterns."
            )
        found[name] = path.read_bytes()
    return found


def _pattern(pattern: str) -> str:
    return _inside(pattern).as_posix()


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise EnvironmentFailure(f"{name!r} is no relative path inside a job's workspace")
    return path


def _is_own_file(path: Path, folder: Path) -> bool:
    """A regular file that is reached over folders only, so that no link leads out of the workspace."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        return path.parent.resolve() == folder.resolve() / path.parent.relative_to(folder)
    except OSError:  # it went meanwhile
        return False
