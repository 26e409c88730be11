"""When training ends: after its last epoch, or once `train.patience` epochs in a row brought no new best skill.

It is told from the epochs' records, so that a run that ended so and is resumed does not go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_kernel.config.schema import TrainSettings
from skillopt_kernel.loop.state import LoopState


def next_epoch(train: TrainSettings, state: LoopState) -> int | None:
    """The epoch to take next, from 1; `None` when none follows."""
    ended = state.epochs[-1] if state.epochs else None
    if ended is not None and is_last(train, ended.epoch, ended.epochs_without_best):
        return None
    return state.epoch_ended + 1


def is_last(train: TrainSettings, epoch: int, without_best: int) -> bool:
    """Whether none follows `epoch`, the last of so many without a new best skill."""
    return epoch >= train.num_epochs or 0 < train.patience <= without_best


def epochs_without_best(state: LoopState, steps: Sequence[int]) -> int:
    """How many epochs in a row brought no new best skill, up to the one of `steps`, which is about to end.

    What guidance at an epoch's end earns counts for the epoch's last step.
    """
    before = state.epochs[-1].epochs_without_best if state.epochs else 0
    return 0 if state.best_step in steps else before + 1


def ended_early(train: TrainSettings, state: LoopState) -> str:
    """Why training ended before its last epoch, in a sentence; "" while it goes on and when it did not."""
    ended = state.epochs[-1] if state.epochs else None
    if ended is None or ended.epoch >= train.num_epochs or next_epoch(train, state) is not None:
        return ""
    return (
        f"training ended after epoch {ended.epoch} of {train.num_epochs}: train.patience is {train.patience}, and so "
        f"many epochs in a row brought no new best skill."
    )
