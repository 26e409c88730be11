"""Checkpoints: the order in which a step is written down, and how a run is taken up again.

`runtime_state.json` is the commit marker and is written after everything that it speaks of; `best_skill.md`
is a copy for people, written after it and made again on a resume.
"""

from __future__ import annotations

import time
from typing import Any

import attrs

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.history import StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.state import LoopState
from skillopt_kernel.records import Scored
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.files import write_json, write_json_lines
from skillopt_kernel.store.state import History, RunState


def commit(run: RunContext, record: StepRecord, entry: MemoryEntry) -> None:
    """Write one finished step down; it counts from the moment the state is on disk."""
    state, directory = run.state_of_run, run.directory
    run.check_plugin_state()
    write_json(directory.step(record.step) / "trajectory_digest.json", entry.as_json())
    directory.save_skill(record.step, state.current.skill)
    state.step, state.current_path = record.step, directory.relative(directory.skill(record.step))
    if state.best_step == record.step:
        state.best_path = state.current_path
    state.history.append(record)
    write_json(directory.step(record.step) / "step_record.json", record.as_json())
    save(run)


def save(run: RunContext) -> None:
    """Write history and state, then the copy of the best skill; tell observers."""
    state, directory = run.state_of_run, run.directory
    run.outcomes.sync()
    History(directory.root).write([record.as_json() for record in state.history])
    decisions = [{"step": one.step, "epoch": one.epoch, **one.lr_decision} for one in state.history if one.lr_decision]
    if decisions:
        write_json_lines(directory.root / "lr_history.jsonl", decisions)
    RunState(
        last_completed_step=state.step,
        current_skill_path=state.current_path,
        current_score=state.current_score,
        current_origin=state.current.origin,
        best_skill_path=state.best_path,
        best_score=state.best_score,
        best_step=state.best_step,
        best_origin=state.best.origin,
        extra=state.extra() | {"ledger": run.models.ledger.snapshot(), "seconds": run_seconds(run)},
    ).save(directory.root)
    directory.save_best(state.best.skill)
    run.emit("checkpoint_saved", file="runtime_state.json")
    if run.settings.hooks.strict:
        run.events.flush()  # raises what an observer has raised


def restore(directory: RunDirectory, state: LoopState) -> list[dict[str, object]]:
    """Take up the last checkpoint of `directory` into `state`; returns the ledger's snapshot.

    Without a checkpoint nothing changes. History beyond the checkpoint is dropped: that step is taken again.
    """
    saved = RunState.load(directory.root)
    if saved is None:
        return []
    state.step, state.best_step = saved.last_completed_step, saved.best_step
    state.current = Scored(_read(directory, saved.current_skill_path), saved.current_origin)
    state.best = Scored(_read(directory, saved.best_skill_path), saved.best_origin)
    state.current_path, state.best_path = saved.current_skill_path, saved.best_skill_path
    state.current_score, state.best_score = saved.current_score, saved.best_score
    state.restore_extra(saved.extra)
    records = History(directory.root).truncate(saved.last_completed_step)
    state.history = [StepRecord(**_tuples(record)) for record in records]
    directory.save_best(state.best.skill)
    ledger = saved.extra.get("ledger", [])
    return list(ledger)


def _read(directory: RunDirectory, path: str) -> str:
    file = directory.root / path
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise RunDirectoryError(
            f"{file}: the skill that the saved state names cannot be read ({error.strerror}). Restore the file, or "
            f"start again beside it with --fresh."
        ) from error


def _tuples(record: dict[str, Any]) -> dict[str, Any]:
    fields = {field.name for field in attrs.fields(StepRecord)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in record.items() if name in fields}


def run_seconds(run: RunContext) -> float:
    return round(run.state_of_run.seconds + time.monotonic() - run.began, 3)
