"""The table at the end of several configurations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillopt_kernel.console import score, table
from skillopt_kernel.store.reading import read_run

from skillopt_commands.several import SeveralRun


def several_text(runs: Sequence[SeveralRun]) -> str:
    """The table of all runs, and a sentence for each that is not finished."""
    headings = ("configuration", "status", "steps", "first", "best", "test", "calls", "tokens", "usd", "time", "folder")
    lines = [table(headings, [*map(_row, runs), _sums(runs)])]
    lines += [f"{run.label}: {run.sentence}" for run in runs if run.sentence]
    if any(run.exit_code for run in runs):
        lines.append("Run the same command again: finished runs are left as they are, and the others go on.")
    return "\n".join(["", *lines])


def _row(run: SeveralRun) -> tuple[str, ...]:
    summary = run.summary
    scores: tuple[str, ...]
    before = " before" if summary is not None and summary.already_finished else ""
    if summary is None:
        view = read_run(Path(run.folder))
        scores = (str(view.step), "-", score(view.best_score), "-")
    else:
        fields = ("baseline_selection_hard", "best_selection_hard", "test_hard")
        scores = (str(summary.total_steps), *(score(getattr(summary, name)) for name in fields))
    seconds = "-" if summary is None else f"{summary.total_wall_time_s:.0f}s"
    told = (_count(run.used.get("calls", 0)), _count(run.used.get("total_tokens")), _usd(run.used.get("usd")))
    return (run.label, f"{run.status}{before}", *scores, *told, seconds, os.path.relpath(run.folder))


def _sums(runs: Sequence[SeveralRun]) -> tuple[str, ...]:
    """What all used together; a sum is unknown as soon as one part of it is."""

    def summed(name: str) -> Any:
        values = [run.used.get(name) for run in runs if run.used.get("calls")]
        return None if None in values else sum(value for value in values if value is not None)

    told = (_count(summed("calls")), _count(summed("total_tokens")), _usd(summed("usd")))
    return ("all", "", "", "", "", "", *told, "", "")


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
