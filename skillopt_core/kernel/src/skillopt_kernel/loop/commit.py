"""The commit: `runtime_state.json` is written after everything that it speaks of.

`best_skill.md` is a copy for people, written after it.
"""

from __future__ import annotations

import json

import attrs

from skillopt_kernel.errors import HookError, SkillOptError
from skillopt_kernel.history import StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.state import LoopState
from skillopt_kernel.store.files import write_json, write_json_lines
from skillopt_kernel.store.state import History, RunState

PLUGIN_STATE_LIMIT = 64_000
"""Bytes of JSON that one plugin may keep with each checkpoint."""


def commit(run: RunContext, record: StepRecord, entry: MemoryEntry) -> None:
    """Write one finished step down; it counts from the moment the state is on disk."""
    state, directory = run.state_of_run, run.directory
    check_plugin_state(state)
    write_json(directory.step(record.step) / "trajectory_digest.json", attrs.asdict(entry))
    directory.save_skill(record.step, state.current.skill)
    state.step, state.current_path = record.step, directory.relative(directory.skill(record.step))
    state.hashes[state.current_path] = run.digest(state.current.skill)
    if state.best_step == record.step:
        state.best_path = state.current_path
    state.memory.append(entry)
    state.history.append(record)
    write_json(directory.step(record.step) / "step_record.json", record.as_json())
    save(run)


def save(run: RunContext) -> None:
    """Write history and state, then the copy of the best skill; tell observers."""
    state, root = run.state_of_run, run.directory.root
    run.outcomes.sync()
    run.models.ledger.sync()
    History(root).write([record.as_json() for record in state.history])
    decisions = [{"step": one.step, "epoch": one.epoch, **one.lr_decision} for one in state.history if one.lr_decision]
    if decisions:
        write_json_lines(root / "lr_history.jsonl", decisions)
    RunState(
        last_completed_step=state.step,
        current_skill_path=state.current_path,
        best_skill_path=state.best_path,
        **state.standing(),
        extra={
            "epoch_ended": state.epoch_ended,
            "memory": [attrs.asdict(entry) for entry in state.memory],
            "meta": state.meta,
            "plugins": state.plugins,
            "epochs": [record.as_json() for record in state.epochs],
            "seconds": run.seconds,
            "hashes": state.hashes,
        },
    ).save(root)
    run.directory.save_best(state.best.skill)
    run.emit("checkpoint_saved", file="runtime_state.json")
    if run.settings.hooks.strict:
        run.events.flush()  # raises what an observer has raised


def check_plugin_state(state: LoopState) -> None:
    """Raise `SkillOptError` for a plugin whose state is no JSON dict or too large to be saved."""
    for name, kept in state.plugins.items():
        try:
            size = len(json.dumps(kept, allow_nan=False).encode("utf-8"))
        except (TypeError, ValueError) as error:
            raise HookError("run.state", name, error) from error
        if size > PLUGIN_STATE_LIMIT:
            raise SkillOptError(
                f"the plugin {name!r} keeps {size:,} bytes in run.state, more than {PLUGIN_STATE_LIMIT:,}; it "
                f"should keep large things in its own files (run.folder(step))."
            )
