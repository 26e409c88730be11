"""`skillopt status`: what a run, also a live one, has reached."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(run: Path, as_json: bool) -> int:
    """What the training run or evaluation in the folder RUN has reached; reads only, also while it is running."""
    from skillopt_kernel.console import echo
    from skillopt_kernel.errors import RunDirectoryError
    from skillopt_kernel.store.reading import read_run

    view = read_run(run)
    if view.status == "foreign":
        raise RunDirectoryError(f"{view.problem} `skillopt runs FOLDER` lists the runs in a folder.")
    if as_json:
        told = ["status", "problem", "config_name", "evaluates", "step", "total_steps"]
        told += ["current_score", "best_score", "best_step"]
        told_of = {name: getattr(view, name) for name in told} | {"stopped": stopped(view)}
        echo(json.dumps(told_of | {"at": dict(view.at), "folder": str(run)}))
    else:
        echo(_text(view))
    return 1 if view.status == "broken" else 0


def _text(view: Any) -> str:
    from skillopt_kernel.console import score, table

    total = f" of {view.total_steps}" if view.total_steps is not None else ""
    reached = f"evaluation on {view.evaluates}" if view.evaluates else f"{view.step}{total} steps done"
    lines = [f"{view.config_name}: {view.status}, {reached}"]
    if view.holder is not None:
        at = ", ".join(f"{name} {value}" for name, value in view.at.items())
        lines.append(f"Process {view.holder.get('pid')} on {view.holder.get('host')}: {at or 'starting'}")
    if view.problem:
        lines.append(f"Problem: {view.problem}")
    if sentence := stopped(view):
        lines.append(f"Stopped: {sentence}")
    if view.evaluates:
        return "\n".join([*lines, f"Last event {view.updated or 'none'}", *_evaluated(view.summary)])
    lines.append(
        f"Gate score: current skill {score(view.current_score)}, best {score(view.best_score)} (step {view.best_step})"
    )
    lines.append(f"Last event {view.updated or 'none'}")
    if view.summary.get("budget"):
        told = view.summary["budget"]
        lines.append(f"Ended early: {told}")
    if view.history:
        headings = ("step", "epoch", "action", "rollout", "candidate", "current", "best")
        lines += ["", table(headings, [_row(record) for record in view.history])]
    if view.summary:
        tests = {"first": "baseline_test_hard", "best": "test_hard", "last": "final_test_hard"}
        told = ", ".join(f"{name} {score(view.summary.get(key))}" for name, key in tests.items())
        lines += ["", f"Test score of the skills: {told}"]
    return "\n".join(lines)


def stopped(view: Any) -> str:
    """Why a run that has not ended was stopped, such as for what it waits; "" where nothing was told."""
    from skillopt_kernel.store.event_log import EVENTS
    from skillopt_kernel.store.files import last_lines

    last = last_lines(view.folder / EVENTS, 1) if view.status == "unfinished" else []
    return str(last[0].get("message", "")) if last and last[0].get("event") == "run_failed" else ""


def _evaluated(summary: Mapping[str, Any]) -> list[str]:
    from skillopt_commands.texts import evaluation_text

    return ["", evaluation_text(summary)] if summary else []


def _row(record: Mapping[str, Any]) -> tuple[str, ...]:
    from skillopt_kernel.console import score

    scores = ("rollout_hard", "candidate_gate_score", "current_score", "best_score")
    return (
        str(record["step"]),
        str(record["epoch"]),
        str(record["action"]),
        *(score(record.get(name)) for name in scores),
    )
