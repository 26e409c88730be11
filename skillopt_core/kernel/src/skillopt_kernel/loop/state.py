"""What a run knows between two steps, how it is written down, and how it is taken up again.

`runtime_state.json` is the commit marker and is written after everything that it speaks of; what lies on disk
beyond it is made again. `best_skill.md` is a copy for people, written after it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from attrs import define, field

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.history import EpochRecord, StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.records import Scored
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.fields import structure
from skillopt_kernel.store.files import read_text
from skillopt_kernel.store.state import History, RunState


@define
class LoopState:
    """The loop's own memory. Mutable, in the loop's thread only.

    step          the last committed step, 0 before the first; epoch_ended: the last epoch whose end is committed
    current_score, best_score    gate scores, bonus included; `None` while nothing is scored
    memory        the step buffer; meta: the meta skill
    plugins       one JSON dict for each hook plugin
    seconds       wall time of earlier processes of this run
    current_path, best_path      where the two texts lie, relative to the run directory
    hashes        path of a saved skill -> its hash, by which a damaged file is known
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
    hashes: dict[str, str] = field(factory=dict)

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


def restore(directory: RunDirectory, state: LoopState) -> None:
    """Take up the last checkpoint of `directory` into `state`.

    Without a checkpoint nothing changes. History beyond the checkpoint is dropped: that step is taken again.
    """
    saved = RunState.load(directory.root)
    if saved is None:
        return
    state.step, state.best_step = saved.last_completed_step, saved.best_step
    state.hashes = dict(saved.extra.get("hashes", {}))
    for path in state.hashes:
        saved_skill(directory, state, path)
    state.current = Scored(saved_skill(directory, state, saved.current_skill_path), saved.current_origin)
    state.best = Scored(saved_skill(directory, state, saved.best_skill_path), saved.best_origin)
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


def saved_skill(directory: RunDirectory, state: LoopState, path: str) -> str:
    """The text of a skill that a checkpoint speaks of. Raises `RunDirectoryError` when it is lost or not that text."""
    file = directory.root / path
    text = read_text(file)
    if skill_hash(text) != state.hashes.get(path, skill_hash(text)):
        cure = "Restore the file, or start again beside it with --fresh."
        raise RunDirectoryError(f"{file}: the saved state names this skill, and it was changed since. {cure}")
    return text
