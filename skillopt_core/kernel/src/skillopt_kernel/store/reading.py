"""A look at a run directory, finished or live, that takes no lock and changes nothing.

For `skillopt status`, `skillopt runs` and the Web UI. A folder that is broken or holds something else is
reported in `problem`; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.directory import CONFIG, FINGERPRINT, FINISHED, SUMMARY
from skillopt_kernel.store.event_log import EVENTS
from skillopt_kernel.store.files import read_json
from skillopt_kernel.store.journal import last_lines, read_lines
from skillopt_kernel.store.lock import holder
from skillopt_kernel.store.state import History, RunState

RunStatus = Literal["running", "unfinished", "finished", "broken", "foreign"]
_TAIL = 200
"""How many events are looked at for what happens now."""


@frozen(kw_only=True)
class RunView:
    """One run as it stands.

    status    running: a process holds its lock; unfinished: none does and it has not ended; finished; broken: a
              file of it cannot be read; foreign: no run directory. `problem` says what is wrong, if anything.
    step      the last committed step, of `total_steps` (`None` while unknown)
    scores    gate scores after that step; `summary` is empty before the end
    at        what the last event says of the moment: epoch, step, stage
    holder    pid, host, since of the process that holds the lock
    history   the step records; events: the last events, oldest first
    started, updated    time of the first and of the last event
    """

    folder: Path
    status: RunStatus
    problem: str = ""
    config_name: str = ""
    config: Mapping[str, Any] = field(factory=dict)
    step: int = 0
    total_steps: int | None = None
    current_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    best_origin: str = ""
    at: Mapping[str, Any] = field(factory=dict)
    holder: Mapping[str, Any] | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    summary: Mapping[str, Any] = field(factory=dict)
    started: str = ""
    updated: str = ""


def is_run(folder: Path) -> bool:
    """Whether a run was begun in `folder`."""
    try:
        return (folder / FINGERPRINT).is_file()
    except OSError:
        return False


def read_run(folder: Path, *, events: int = 10) -> RunView:
    """The view of one run, with its last `events` events."""
    if not is_run(folder):
        what = "is not a run directory" if folder.is_dir() else "is not a folder"
        return RunView(folder=folder, status="foreign", problem=f"{folder} {what}.")
    problems: list[str] = []
    config = _read(problems, lambda: _object(folder / CONFIG), {})
    summary = _read(problems, lambda: _object(folder / SUMMARY), {}) if (folder / SUMMARY).exists() else {}
    state = _read(problems, lambda: RunState.load(folder), None)
    history = _read(problems, History(folder).load, [])
    tail = last_lines(folder / EVENTS, max(_TAIL, events))
    started = next((event for _, event in read_lines(folder / EVENTS)), {})
    begun = next((event for event in reversed(tail) if event.get("event") == "run_started"), started)
    held = holder(folder)
    finished = summary.get("status") == FINISHED
    last = tail[-1] if tail else {}
    total = begun.get("total_steps")
    return RunView(
        folder=folder,
        status="broken" if problems else "running" if held is not None else "finished" if finished else "unfinished",
        problem=" ".join(problems),
        config_name=str(begun.get("config") or folder.name),
        config=config,
        step=state.last_completed_step if state else 0,
        total_steps=total if isinstance(total, int) else None,
        current_score=state.current_score if state else None,
        best_score=state.best_score if state else None,
        best_step=state.best_step if state else 0,
        best_origin=state.best_origin if state else "",
        at={key: last[key] for key in ("epoch", "step", "stage") if key in last},
        holder=held,
        history=tuple(history),
        events=tuple(tail[-events:] if events else ()),
        summary=summary,
        started=str(started.get("time", "")),
        updated=str(last.get("time", "")),
    )


def find_runs(root: Path) -> list[RunView]:
    """The runs at and directly below `root`, the one that was active last first."""
    views = [read_run(folder) for folder in _folders(root) if is_run(folder)]
    return sorted(views, key=lambda view: (view.updated, view.folder.name), reverse=True)


def _folders(root: Path) -> Iterator[Path]:
    yield root
    try:
        yield from sorted(path for path in root.iterdir() if path.is_dir())
    except OSError:
        return


def _read(problems: list[str], read: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return read()
    except RunDirectoryError as error:
        problems.append(str(error))
        return otherwise


def _object(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path}: this must be a JSON object.")
    return value
