"""One event of a run: what `events.jsonl` holds a line for, and what observer hooks are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

EVENT_VERSION = 1


@frozen
class Event:
    """One thing that happened.

    name   as the observer hook without its prefix ("step_finished")
    seq    its number in the run, from 1, without gaps
    time   UTC, ISO 8601 with milliseconds
    run    the run directory's name; epoch, step, stage where they apply
    data   ids, numbers and relative paths; never trajectories or prompts
    """

    name: str
    seq: int
    time: str
    run: str
    epoch: int | None = None
    step: int | None = None
    stage: str | None = None
    data: Mapping[str, Any] = field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The line of `events.jsonl`: `{v, seq, time, event, run, epoch?, step?, stage?, ...data}`.

        What every event has is never replaced by a key of `data`.
        """
        line = {"v": EVENT_VERSION, "seq": self.seq, "time": self.time, "event": self.name, "run": self.run}
        place = {"epoch": self.epoch, "step": self.step, "stage": self.stage}
        line |= {key: value for key, value in place.items() if value is not None}
        return {**line, **self.data, **line}
