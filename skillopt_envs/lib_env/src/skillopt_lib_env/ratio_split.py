"""A data set split by a ratio: the ratio read, the parts counted, cut and written out.

Randomness comes from the seed alone, through Python's Mersenne Twister, so that the same numbers give the same split
on every machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice
from math import gcd, lcm
from pathlib import Path
from typing import Any, TypeVar

from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS, sample_tasks
from skillopt_kernel.store.files import write_text

Item = TypeVar("Item")

FOLDERS = {"train": "train", "selection": "val", "test": "test"}
"""Part of a split -> the folder that holds it."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")


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


def write_splits(
    folder: Path, parts: Mapping[str, Sequence[Mapping[str, Any]]], *, source: str, ratio: str, seed: int
) -> None:
    """Write `<folder>/<part's folder>/items.json` and `split_manifest.json`, each replaced as a whole.

    `parts` maps "train", "selection" and "test" to raw items. The manifest, written last, says that the split is
    complete: `{source_data_path, split_mode, split_ratio, split_seed, counts}`.
    """
    facts = {"source_data_path": source, "split_mode": "ratio", "split_ratio": ratio, "split_seed": seed}
    write_parts(folder, parts, facts)


def write_parts(folder: Path, parts: Mapping[str, Sequence[Mapping[str, Any]]], facts: Mapping[str, Any]) -> None:
    """Write `<folder>/<part's folder>/items.json`, and `split_manifest.json` with `facts` and the counts.

    Each file is replaced as a whole; the manifest, written last, says that the split is complete.
    """
    counts = {name: len(parts.get(part, ())) for part, name in FOLDERS.items()}
    documents: dict[str, Any] = {f"{name}/items.json": list(parts.get(part, ())) for part, name in FOLDERS.items()}
    documents["split_manifest.json"] = {**facts, "counts": counts}
    for name, content in documents.items():
        write_text(folder / name, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
