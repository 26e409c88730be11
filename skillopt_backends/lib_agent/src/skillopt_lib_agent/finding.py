"""Where a program lies: by its path, or by its name in PATH."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def find_program(name: str, folders: Sequence[str] | None = None, endings: Sequence[str] | None = None) -> Path | None:
    """The file of a program, absolute; `None` when there is none that can be run.

    name     a bare name, or a path (`~` allowed) from the working directory
    folders  where a bare name is looked for; `None`: as PATH says
    endings  what a name may lack: `.CMD` of a shim of npm; `None`: as PATHEXT says, on Windows only
    """
    if folders is None:
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if endings is None:
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if os.name == "nt" else ()
    written = Path(name).expanduser()
    places = [written] if written.name != name else [Path(folder) / name for folder in folders if folder]
    for place in places:
        # With endings the bare file comes last: beside a shim npm leaves a script for another shell under that name.
        shims = [place] if place.suffix.lower() in map(str.lower, endings) else [
            *(place.with_name(place.name + ending) for ending in (*endings, *map(str.lower, endings))), place
        ]  # fmt: skip
        for path in shims:
            if path.is_file() and os.access(path, os.X_OK if not endings else os.R_OK):
                return path.absolute()
    return None
