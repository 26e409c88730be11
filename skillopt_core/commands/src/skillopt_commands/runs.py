"""`skillopt runs`: the runs in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from skillopt_kernel.store.reading import RunView


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("outputs"))
def runs(folder: Path) -> int:
    """List the training runs and evaluations in FOLDER (default: outputs), the one that was active last first."""
    from skillopt_kernel.console import echo, table
    from skillopt_kernel.errors import RunDirectoryError

    if not folder.is_dir():
        raise RunDirectoryError(f"there is no folder {folder} here; `skillopt runs FOLDER` lists the runs in another.")
    views = find_runs(folder)
    if not views:
        echo(f"There is no run in {folder}.")
        return 0
    rows = [
        (
            view.folder.name if view.folder == folder else view.folder.relative_to(folder).as_posix(),
            view.status,
            *_reached(view),
            view.updated,
        )
        for view in views
    ]
    echo(table(("run", "status", "step", "best", "test", "last event"), rows))
    return 0


def find_runs(root: Path) -> list[RunView]:
    """The runs at and directly below `root`, those of a series included; the one that was active last first."""
    from skillopt_kernel.store.reading import read_run

    folders = [root, *(path for pattern in ("*", "*/seed-*") for path in root.glob(pattern) if path.is_dir())]
    views = [view for view in map(read_run, folders) if view.status != "foreign"]
    return sorted(views, key=lambda view: (view.updated, view.folder.name), reverse=True)


def _reached(view: RunView) -> tuple[str, str, str]:
    """Step, best gate score and test score of a training run; of an evaluation its split and its score there."""
    from skillopt_kernel.console import score

    if view.evaluates:
        tested = score(view.summary.get("hard"))
        on_test = view.evaluates == "test"
        return f"eval of {view.evaluates}", "-" if on_test else tested, tested if on_test else "-"
    total = view.total_steps if view.total_steps is not None else "?"
    return f"{view.step}/{total}", score(view.best_score), score(view.summary.get("test_hard"))
