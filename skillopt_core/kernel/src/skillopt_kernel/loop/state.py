"""What a run knows between two steps, how it is written down, and how it is taken up again.

`runtime_state.json` is the commit marker and is written after everything that it speaks of; what lies on disk
beyond it is made again. `best_skill.md` is a copy for people, written after it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import attrs
from attrs import define, field

from skillopt_kernel.errors import HookError, RunDirectoryError, SkillOptError
from skillopt_kernel.history import EpochRecord, StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.records import Scored
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.fields import structure
from skillopt_kernel.store.files import read_text, write_json, write_json_lines
from skillopt_kernel.store.state import History, RunState

if TYPE_CHECKING:
    from skillopt_kernel.loop.run import RunContext

PLUGIN_STATE_LIMIT = 64_000
"""Bytes of JSON that one plugin may keep with each checkpoint."""


@define
class LoopState:
    """The loop's own memory. Mutable, in the loop's thread only.

    step          the last committed step, 0 before the first; epoch_ended: the last epoch whose end is committed
    current_score, best_score    gate scores, bonus included; `None` while nothing is scored
    memory        the step buffer; meta: the meta skill
    plugins       one JSON dict for each hook plugin
    seconds       wall time of earlier processes of this run
    current_path, best_path      where the two texts lie, relative to the run directory
    """

    start: Scored
    current: Scored
    best: Scored
    step: int = 0
    epoch_ended: int = 0
    best_step: int = 0
    current_score: float | None = None
    best_score: float | None = None
    memory: list[MemoryEntry] = field(factory=list)
    meta: str = ""
    plugins: defaultdict[str, dict[str, Any]] = field(factory=lambda: defaultdict(dict))
    history: list[StepRecord] = field(factory=list)
    epochs: list[EpochRecord] = field(factory=list)
    seconds: float = 0.0
    current_path: str = "skills/skill_v0000.md"
    best_path: str = "skills/skill_v0000.md"

    @classmethod
    def at_start(cls, skill: str) -> LoopState:
        start = Scored(skill, "initial_skill")
        return cls(start, start, start)

    def standing(self) -> dict[str, Any]:
        """How the current and the best skill stand, as records and the saved state tell it."""
        return {
            "current_score": self.current_score,
            "best_score": self.best_score,
            "best_step": self.best_step,
            "current_origin": self.current.origin,
            "best_origin": self.best.origin,
        }


def commit(run: RunContext, record: StepRecord, entry: MemoryEntry) -> None:
    """Write one finished step down; it counts from the moment the state is on disk."""
    state, directory = run.state_of_run, run.directory
    check_plugin_state(state)
    write_json(directory.step(record.step) / "trajectory_digest.json", attrs.asdict(entry))
    directory.save_skill(record.step, state.current.skill)
    state.step, state.current_path = record.step, directory.relative(directory.skill(record.step))
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
        },
    ).save(root)
    run.directory.save_best(state.best.skill)
    run.emit("checkpoint_saved", file="runtime_state.json")
    if run.settings.hooks.strict:
        run.events.flush()  # raises what an observer has raised


def restore(directory: RunDirectory, state: LoopState) -> None:
    """Take up the last checkpoint of `directory` into `state`.

    Without a checkpoint nothing changes. History beyond the checkpoint is dropped: that step is taken again.
    """
    saved = RunState.load(directory.root)
    if saved is None:
        return
    state.step, state.best_step = saved.last_completed_step, saved.best_step
    state.current = Scored(_read(directory, saved.current_skill_path), saved.current_origin)
    state.best = Scored(_read(directory, saved.best_skill_path), saved.best_origin)
    state.current_path, state.best_path = saved.current_skill_path, saved.best_skill_path
    state.current_score, state.best_score = saved.current_score, saved.best_score
    extra, records = saved.extra, History(directory.root).truncate(saved.last_completed_step)
    try:
        state.epoch_ended, state.meta, state.seconds = extra["epoch_ended"], extra["meta"], extra["seconds"]
        state.plugins.update(extra["plugins"])
        state.memory = [structure(entry, MemoryEntry) for entry in extra["memory"]]
        state.epochs = [structure(record, EpochRecord) for record in extra["epochs"]]
        state.history = [structure(StepRecord.gathered(record), StepRecord) for record in records]
    except (KeyError, ValueError) as error:
        raise RunDirectoryError(
            f"{directory.root}: the saved state or history cannot be used: {error}. Restore the files, or start again "
            f"beside it with --fresh."
        ) from error
    directory.save_best(state.best.skill)


def _read(directory: RunDirectory, path: str) -> str:
    try:
        return read_text(directory.root / path)
    except RunDirectoryError as error:
        raise RunDirectoryError(
            f"{error} The saved state names this skill: restore the file, or start again beside it with --fresh."
        ) from error


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
