"""Splits and batches: ratios, names, the checks on ids and sizes, and which tasks an epoch asks in which order.

All but `write_splits` are pure functions of their arguments; randomness comes from seeds alone, through Python's
Mersenne Twister, so that the same numbers give the same split and the same batches on every machine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice
from math import gcd, lcm
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from attrs import frozen

from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Splits, Task

Item = TypeVar("Item")

PARTS = ("train", "selection", "test")
FOLDERS = {"train": "train", "selection": "val", "test": "test"}
"""Part of a split -> the folder that holds it."""

ALIASES = {"val": "selection", "valid_seen": "selection", "valid_unseen": "test"}
"""Other names of the parts."""

ALL = "all"
"""The name of all three parts together, where a skill is evaluated."""

MOST_IDS_NAMED = 20
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")


# Names ---------------------------------------------------------------------------------------------------


def split_name(name: str) -> str:
    """The part ("train", "selection" or "test") that `name` means. Raises `DataError` for an unknown one."""
    part = name.strip().lower()
    part = ALIASES.get(part, part)
    if part not in PARTS:
        raise DataError(f"there is no split {name!r}; the known names are {', '.join((*PARTS, *ALIASES, ALL))}.")
    return part


def tasks_of(splits: Splits, name: str) -> tuple[Task, ...]:
    """The tasks of the split that `name` means, in file order. Raises `DataError` for an unknown name."""
    tasks: tuple[Task, ...] = getattr(splits, split_name(name))
    return tasks


# Ratios --------------------------------------------------------------------------------------------------


def parse_split_ratio(text: str) -> tuple[int, int, int]:
    """Read `train:selection:test` as weights ("2:1:7") or shares ("0.5:0.25:0.25", which are 2:1:1).

    Two parts ("8:2") leave no test, and a 0 means none: "2:1:0" has no test tasks, "3:0:1" no selection tasks.
    Raises `DataError` for anything else, for shares that do not add up to 1, and for no training tasks.
    """
    parts = [part.strip() for part in text.split(":")]
    written_well = len(parts) in (2, 3) and all(_NUMBER.fullmatch(part) for part in parts)
    numbers = [Fraction(part) for part in parts] if written_well else []
    if not numbers or not numbers[0]:
        raise DataError(
            f"env.split_ratio is {text!r}, which is no ratio: give train:selection:test as whole numbers, as in "
            f"'2:1:7', or as shares, as in '0.2:0.1:0.7'; train:selection, as in '8:2', or a 0 for no test."
        )
    if "." in text and sum(numbers) != 1:
        raise DataError(
            f"env.split_ratio is {text!r}: these shares add up to {float(sum(numbers)):g}, and must add up to 1. Whole "
            f"numbers, as in '2:1:7', may add up to anything."
        )
    scale = lcm(*(number.denominator for number in numbers))
    weights = [int(number * scale) for number in numbers]
    shared = gcd(*weights) if "." in text else 1
    train, selection, *test = (weight // shared for weight in weights)
    return train, selection, test[0] if test else 0


def split_counts(total: int, ratio: Sequence[int]) -> tuple[int, ...]:
    """How many of `total` items each part gets, by the method of the largest remainder (Hamilton's).

    Each part gets the floor of its exact share; what is left goes one each to the largest fractional part, ties
    to the larger weight, then to the earlier part. A weight of 0 gets nothing.
    """
    weights = sum(ratio)
    counts = [total * weight // weights for weight in ratio]
    by_fraction = sorted(range(len(ratio)), key=lambda part: (-(total * ratio[part] % weights), -ratio[part], part))
    for part in by_fraction[: total - sum(counts)]:
        counts[part] += 1
    return tuple(counts)


def minimum_size(ratio: Sequence[int]) -> int:
    """The smallest number of items from which on no part of `ratio` with a weight is empty.

    Not simply the smallest that works: 1:3:3 fills each part of 3 items, but not of 4. For ratios of more than
    100,000 to 1 a number that works, not always the smallest.
    """
    # Every exact share is at least 1 from here on; below, the largest remainder may still fill each part.
    size = -(-sum(ratio) // min(weight for weight in ratio if weight))
    lowest = max(1, size - 100_000)
    while size > lowest and _fills(split_counts(size - 1, ratio), ratio):
        size -= 1
    return size


def _fills(counts: Sequence[int], ratio: Sequence[int]) -> bool:
    return all(count > 0 for count, weight in zip(counts, ratio, strict=True) if weight)


def written_ratio(ratio: Sequence[int], between: str) -> str:
    """The ratio as text; a test part of 0 is left out."""
    return between.join(map(str, ratio if ratio[-1] else ratio[:-1]))


def split_by_ratio(items: Sequence[Item], ratio: tuple[int, int, int], seed: int) -> dict[str, list[Item]]:
    """Shuffle a copy of `items` with `Random(seed)` and cut it into train, selection and test, in this order.

    Raises `DataError` when a part that the ratio asks for would be empty.
    """
    counts = split_counts(len(items), ratio)
    if not _fills(counts, ratio):
        shares = ", ".join(f"{count} {part}" for count, part in zip(counts, PARTS, strict=True))
        raise DataError(
            f"{len(items)} items are too few to split {written_ratio(ratio, ':')} ({shares}): no part may be empty. "
            f"Give at least {minimum_size(ratio)} items, or another env.split_ratio."
        )
    shuffled = iter(sample_tasks(items, len(items), seed))
    return {part: list(islice(shuffled, count)) for part, count in zip(PARTS, counts, strict=True)}


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


def limited(splits: Splits, limit: int) -> Splits:
    """Each split cut to its first `limit` tasks; 0 keeps all."""
    return Splits(*(getattr(splits, part)[: limit if limit > 0 else None] for part in PARTS))


def check_train_size(configured: int, found: int, limit: int = 0) -> None:
    """Raise `DataError` when `train.train_size` is given (not 0) and is not the number of training tasks.

    A configuration that pins it can still be tried on the first `limit` tasks (`env.limit`; 0: all).
    """
    if configured and found != (min(configured, limit) if limit > 0 else configured):
        raise DataError(
            f"train.train_size is {configured}, but the train split holds {found} tasks. Set train.train_size to "
            f"{found}, or to 0 to take whatever the data holds."
        )


# A split written out -------------------------------------------------------------------------------------


def write_splits(
    folder: Path, parts: Mapping[str, Sequence[Mapping[str, Any]]], *, source: str, ratio: str, seed: int
) -> None:
    """Write `<folder>/<part's folder>/items.json` and `split_manifest.json`, each replaced as a whole.

    `parts` maps "train", "selection" and "test" to raw items. The manifest, written last, says that the split is
    complete: `{source_data_path, split_mode, split_ratio, split_seed, counts}`.
    """
    from skillopt_kernel.store.files import write_text

    documents: dict[str, Any] = {f"{FOLDERS[part]}/items.json": list(parts.get(part, ())) for part in PARTS}
    documents["split_manifest.json"] = {
        "source_data_path": source,
        "split_mode": "ratio",
        "split_ratio": ratio,
        "split_seed": seed,
        "counts": {FOLDERS[part]: len(parts.get(part, ())) for part in PARTS},
    }
    for name, content in documents.items():
        write_text(folder / name, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


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
