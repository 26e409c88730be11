"""Whether the run's folder can be written, and has room."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from skillopt_kernel.loop.api import open_directory
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.store.reading import read_run

from skillopt_commands.checks.finding import Report

LITTLE, TOO_LITTLE = 1_000_000_000, 50_000_000
"""Bytes of free disk below which it is warned, and below which a run is likely to be stopped by it."""


def check_places(report: Report, prepared: Prepared, out: Path | None) -> None:
    """The run directory as `skillopt train` would take it."""
    directory = report.attempt("run directory", lambda: open_directory(prepared, out, fresh=False))
    if directory is not None:
        run = read_run(directory.root)
        told = {"foreign": "a new run begins there", "unfinished": f"goes on after step {run.step}"}
        if run.status == "running":
            text = f"another process trains in {directory.root} now; wait for it, or choose another folder (--out)."
            report.add("run directory", "error", text)
        else:
            report.add("run directory", "ok", f"{directory.root}: {told.get(run.status, run.status)}")
        check_folder(report, "run directory", directory.root)


def check_temporary(report: Report) -> None:
    """The folder for temporary files, in which agents work."""
    try:
        check_folder(report, "temporary files", Path(tempfile.gettempdir()))
    except OSError as error:
        text = f"{error.strerror or error}. Set TMPDIR to a folder that can be written."
        report.add("temporary files", "error", text)


def check_folder(report: Report, check: str, folder: Path) -> None:
    """Whether a file can be made in the folder, or in the nearest above it that is there, and the room on its disk."""
    place = folder.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
            file.flush()
        free = shutil.disk_usage(place).free
    except OSError as error:
        cure = "Correct the permissions, free the space, or choose another folder (--out)."
        report.add(check, "error", f"nothing can be written in {place}: {error.strerror or error}. {cure}")
        return
    told = f"{free / 1e9:,.1f} GB are free in {place}"
    if free < LITTLE:
        report.add(check, "error" if free < TOO_LITTLE else "warning", f"only {told}; free some space.")
    else:
        report.add(check, "ok", told)
