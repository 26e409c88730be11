"""`skillopt runs`: the runs in a folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("outputs"))
def runs(folder: Path) -> int:
    """List the runs in FOLDER (default: outputs), the one that was active last first."""
    from skillopt_kernel.console import echo, score, table
    from skillopt_kernel.errors import RunDirectoryError
    from skillopt_kernel.store.reading import find_runs

    if not folder.is_dir():
        raise RunDirectoryError(f"{folder} is not a folder; name the folder that holds the runs.")
    views = find_runs(folder)
    if not views:
        echo(f"There is no run in {folder}.")
        return 0
    rows = [
        (
            view.folder.name if view.folder == folder else view.folder.relative_to(folder).as_posix(),
            view.status,
            f"{view.step}/{view.total_steps if view.total_steps is not None else '?'}",
            score(view.best_score),
            score(view.summary.get("test_hard")),
            view.updated,
        )
        for view in views
    ]
    echo(table(("run", "status", "step", "best", "test", "last event"), rows))
    return 0
