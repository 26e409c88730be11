"""What schedulers share: the two settings of the edit budget and the position in a decay."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import field, frozen


def _count(_: object, attribute: attrs.Attribute[int], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"optimizer.{attribute.name} must be a whole number of edits, 0 or more, not {value!r}")


@frozen
class LearningRateSettings:
    """The edit budget's range.

    learning_rate      at most this many edits in a step; decaying schedules start here
    min_learning_rate  where decaying schedules end; they never give less
    """

    learning_rate: int = field(default=4, validator=_count)
    min_learning_rate: int = field(default=2, validator=_count)


def decay_position(step: int, total_steps: int) -> float:
    """How far a decay has come, 0..1: `min(step, total) / total`; 0 when there is no more than one step.

    `step` is 1-based, so that the last step is at 1 and later ones stay there.
    """
    return 0.0 if total_steps <= 1 else min(step, total_steps) / total_steps
