"""What a run knows between two steps, and how it is written down and read back.

The commit marker is `runtime_state.json`, written last; whatever lies on disk beyond it is made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from skillopt_kernel.history import EpochRecord, StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.records import Scored


@define
class LoopState:
    """The loop's own memory. Mutable, in the loop's thread only.

    step          the last committed step, 0 before the first; epoch_ended: the last epoch whose end is committed
    current_score, best_score    gate scores, bonus included; `None` while nothing is scored
    memory        the step buffer of the epoch; meta: the meta skill
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

    def extra(self) -> dict[str, Any]:
        """What `runtime_state.json` holds beside the fields that people know."""
        return {
            "epoch_ended": self.epoch_ended,
            "memory": [entry.as_json() for entry in self.memory],
            "meta": self.meta,
            "plugins": self.plugins,
            "epochs": [record.as_json() for record in self.epochs],
            "seconds": round(self.seconds, 3),
        }

    def restore_extra(self, extra: Mapping[str, Any]) -> None:
        self.epoch_ended = extra.get("epoch_ended", 0)
        self.memory = [MemoryEntry.from_json(entry) for entry in extra.get("memory", ())]
        self.meta = extra.get("meta", "")
        self.plugins.update({name: dict(state) for name, state in extra.get("plugins", {}).items()})
        self.epochs = [EpochRecord(**record) for record in extra.get("epochs", ())]
        self.seconds = extra.get("seconds", 0.0)
