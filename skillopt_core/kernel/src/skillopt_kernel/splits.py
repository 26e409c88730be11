"""Splits and batches: names, the checks on ids and sizes, and which tasks an epoch asks in which order.

Pure functions of their arguments; randomness comes from seeds alone, through Python's Mersenne Twister, so that the
same numbers give the same batches on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random
from typing import TypeVar

from attrs import frozen

from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Splits

Item = TypeVar("Item")

PARTS = ("train", "selection", "test")
MOST_IDS_NAMED = 20


# Checks --------------------------------------------------------------------------------------------------


def check_splits(splits: Splits, where: str = "the data", *, selection_needed: bool = True) -> Splits:
    """The splits, unless an id stands twice in one or in two, or the train or a needed selection split is empty.

    Raises one `DataError` that names all offending ids for each split and pair of splits. Nothing is dropped:
    which of two equal rows is meant only the owner of the data can say.
    """
    times = {part: Counter(task.id for task in getattr(splits, part)) for part in PARTS}
    problems = []
    for part in PARTS:
        if twice := [one for one, count in times[part].items() if count > 1]:
            problems.append(f"the {part} split holds {_count(twice)} more than once: {_named(twice)}")
    for first, second in combinations(PARTS, 2):
        if shared := [one for one in times[first] if one in times[second]]:
            problems.append(f"{_count(shared)} in both {first} and {second}: {_named(shared)}")
    if problems:
        raise DataError(
            f"{where} cannot be used: {'; '.join(problems)}. Each id may stand once in all splits: remove or rename "
            f"the repeated rows."
        )
    if not times["train"]:
        raise DataError(f"the train split of {where} is empty; training needs at least one task in it.")
    if selection_needed and not times["selection"]:
        raise DataError(
            f"the selection split of {where} is empty; the gate needs at least one task in it. Give it tasks, or set "
            f"evaluation.use_gate to false: then every candidate is taken, whatever it does."
        )
    return splits


def _count(ids: Sequence[str]) -> str:
    return "1 id" if len(ids) == 1 else f"{len(ids)} ids"


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - MOST_IDS_NAMED
    return ", ".join(repr(one) for one in ids[:MOST_IDS_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_train_size(configured: int, found: int, limit: int = 0) -> None:
    """Raise `DataError` when `train.train_size` is given (not 0) and is not the number of training tasks.

    A configuration that pins it can still be tried on the first `limit` tasks (`env.limit`; 0: all).
    """
    if configured and found != (min(configured, limit) if limit > 0 else configured):
        raise DataError(
            f"train.train_size is {configured}, but the train split holds {found} tasks. Set train.train_size to "
            f"{found}, or to 0 to take whatever the data holds."
        )


# Batches -------------------------------------------------------------------------------------------------


@frozen
class Batch:
    """One training batch: the seed of its minibatches, and its tasks as indices into the train split."""

    seed: int
    indices: tuple[int, ...]


def steps_per_epoch(train_size: int, batch_size: int, accumulation: int = 1) -> int:
    """`ceil(train_size / (batch_size * accumulation))`: steps that ask every training task once."""
    return -(-train_size // (batch_size * accumulation))


def epoch_batches(size: int, batch_size: int, accumulation: int, epoch: int, seed: int) -> tuple[Batch, ...]:
    """The batches of one epoch (1-based) over `size` tasks: `steps_per_epoch * accumulation` of them, in order.

    The tasks are shuffled with `Random(seed + 1000 * epoch)` and cut into consecutive batches, the last of which
    may be short; batch b, from 0, has the seed `seed + 1000 * epoch + b + 1`. A batch that would be empty (small
    data with accumulation) gets the first `batch_size` of all tasks, shuffled anew with its own seed. So the
    sampling is without replacement within an epoch, but for these refills.
    """
    base = seed + 1000 * epoch
    order = sample_tasks(range(size), size, base)
    batches = []
    for number in range(steps_per_epoch(size, batch_size, accumulation) * accumulation):
        batch_seed = base + number + 1
        indices = order[number * batch_size : (number + 1) * batch_size]
        batches.append(Batch(batch_seed, indices or sample_tasks(range(size), batch_size, batch_seed)))
    return tuple(batches)


def sample_tasks(tasks: Sequence[Item], count: int, seed: int) -> tuple[Item, ...]:
    """`count` of `tasks` without replacement (all, when there are fewer), shuffled with `Random(seed)`."""
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)
    return tuple(shuffled[:count])


SAMPLES_APART = 1_000_000
"""A training rollout's attempts at a task in epoch e have the sample numbers e, e + this, e + 2 times this, ..."""


def attempt_number(sample: int) -> int:
    """Which of a rollout's attempts at its task has this sample number, from 1."""
    return sample // SAMPLES_APART + 1


def minibatches(
    items: Sequence[Item], size: int, seed: int, unit: Callable[[Item], object] | None = None
) -> tuple[tuple[Item, ...], ...]:
    """Shuffle with `Random(seed)` and cut into groups of `size`, the last of which may be short.

    Items of one `unit` stay side by side, in their order. Failures of a batch are grouped with the batch's seed,
    its successes with that seed plus 1.
    """
    units: dict[object, list[Item]] = {}
    for at, item in enumerate(items):
        units.setdefault(at if unit is None else unit(item), []).append(item)
    shuffled = [item for group in sample_tasks(list(units.values()), len(units), seed) for item in group]
    return tuple(tuple(shuffled[start : start + size]) for start in range(0, len(shuffled), size))
