"""A look at a run directory, finished or live, that takes no lock and changes nothing.

For `skillopt status`, `skillopt runs` and the Web UI. A folder that is broken or holds something else is
reported in `problem`; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.directory import FINGERPRINT, FINISHED, SUMMARY
from skillopt_kernel.store.event_log import EVENTS
from skillopt_kernel.store.files import last_lines, read_lines, read_object
from skillopt_kernel.store.lock import holder
from skillopt_kernel.store.state import History, RunState

EVALUATION = "eval_summary.json"

RunStatus = Literal["running", "unfinished", "budget", "finished", "broken", "foreign"]


@frozen(kw_only=True)
class RunView:
    """One run as it stands.

    status    running: a process holds its lock; unfinished: none does and it has not ended; budget: it ended at a
              limit; finished; broken: a file of it cannot be read; foreign: no run directory. `problem` says what is
              wrong, if anything.
    step      the last committed step, of `total_steps` (`None` while unknown)
    scores    gate scores after that step; `summary` is empty before the end
    at        what the last event says of the moment: epoch, step, stage; updated: its time
    holder    pid, host, since of the process that holds the lock
    history   the step records
    evaluates the split on which a skill is only evaluated; empty for training. `summary` is then eval_summary.json
    """

    folder: Path
    status: RunStatus
    problem: str = ""
    config_name: str = ""
    step: int = 0
    total_steps: int | None = None
    current_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    at: Mapping[str, Any] = field(factory=dict)
    holder: Mapping[str, Any] | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    evaluates: str = ""
    summary: Mapping[str, Any] = field(factory=dict)
    updated: str = ""


def read_run(folder: Path) -> RunView:
    """The view of one run."""
    if not (folder / FINGERPRINT).is_file():
        what = "is not a run directory" if folder.is_dir() else "is not a folder"
        return RunView(folder=folder, status="foreign", problem=f"{folder} {what}.")
    try:
        return _view(folder)
    except (RunDirectoryError, OSError) as error:
        return RunView(folder=folder, status="broken", problem=str(error), config_name=folder.name)


def _view(folder: Path) -> RunView:
    evaluates = str(read_object(folder / FINGERPRINT).get("evaluates", ""))
    told = folder / (EVALUATION if evaluates else SUMMARY)
    summary = read_object(told) if told.exists() else {}
    finished = bool(summary) if evaluates else summary.get("status") == FINISHED
    ended: RunStatus = "finished" if finished else "budget" if summary.get("status") == "budget" else "unfinished"
    state = RunState.load(folder)
    tail = last_lines(folder / EVENTS, 200)  # what happens now
    first = next((event for _, event in read_lines(folder / EVENTS)), {})
    begun = next((event for event in reversed(tail) if event.get("event") == "run_started"), first)
    last = tail[-1] if tail else {}
    held = holder(folder)
    return RunView(
        folder=folder,
        status="running" if held is not None else ended,
        config_name=str(begun.get("config") or folder.name),
        step=state.last_completed_step if state else 0,
        total_steps=begun.get("total_steps"),
        **({name: getattr(state, name) for name in ("current_score", "best_score", "best_step")} if state else {}),
        at={key: last[key] for key in ("epoch", "step", "stage") if key in last},
        holder=held,
        history=tuple(History(folder).load()),
        summary=summary,
        evaluates=evaluates,
        updated=str(last.get("time", "")),
    )
