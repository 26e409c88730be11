"""Which task is for what: 40 % to learn from, 20 % to select by, 40 % to test on, by seed and id.

A task's place is decided by a hash of the seed and its id, not by its row: rows can be moved, and added ones move few
others. Tasks with the same inputs go together, so that nothing that is tested was learnt from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.ratio_split import split_counts, written_ratio

from skillopt_env_tasks.rows import Row, input_key, refuse

FEWEST_TASKS = 10
"""The fewest that are split: 4 to learn from, 2 to select by, 4 to test on."""

FEW_TO_SELECT_BY = 10
"""With fewer selection tasks a warning is given."""

Parts = Mapping[str, Sequence[Row]]
"""Part ("train", "selection", "test") -> its rows in the order of the data."""


def split_by_id(rows: Sequence[Row], ratio: tuple[int, int, int], seed: int, where: str) -> Parts:
    """The rows in parts of the ratio's sizes. Raises `DataError` for too few tasks, or too few that differ."""
    if len(rows) < FEWEST_TASKS:
        verb = "is" if len(rows) == 1 else "are"
        few = ", ".join(f"{count} {part}" for part, count in zip(PARTS, split_counts(FEWEST_TASKS, ratio), strict=True))
        raise DataError(
            f"{where}: {_tasks(len(rows))} {verb} too few: at least {FEWEST_TASKS} are needed ({few}), and with fewer "
            f"than 50 chance decides much. Add tasks. (Data that is split already, by a field `split` or in folders, "
            f"may be smaller.)"
        )
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(input_key(row.task), []).append(row)
    left = dict(zip(PARTS, split_counts(len(rows), ratio), strict=True))
    part_of: dict[str, str] = {}
    for group in sorted(groups.values(), key=lambda group: _place(seed, min(row.task.id for row in group))):
        fits = [part for part in PARTS if left[part] >= len(group)]
        part = fits[0] if fits else max(PARTS, key=lambda part: left[part])
        left[part] -= len(group)
        part_of |= {row.task.id: part for row in group}
    parts = {part: [row for row in rows if part_of[row.task.id] == part] for part in PARTS}
    empty = [part for part, weight in zip(PARTS, ratio, strict=True) if weight and not parts[part]]
    if empty:
        raise DataError(
            f"{where}: {_tasks(len(rows))} have only {len(groups)} different inputs, too few to split "
            f"{written_ratio(ratio, ':')}: nothing is left for {' and '.join(empty)}. Add tasks that ask something "
            f"else."
        )
    return parts


def refuse_shared_inputs(parts: Parts) -> None:
    """Raise `DataError`, with the places, when tasks of two parts have the same inputs."""
    first: dict[str, tuple[str, Row]] = {}
    problems = []
    for part in PARTS:
        for row in parts[part]:
            known, other = first.setdefault(input_key(row.task), (part, row))
            if known != part:
                problems.append(
                    f"{row.item.where}: the {part} task {row.task.id!r} asks the same as the {known} task "
                    f"{other.task.id!r} at {other.item.where}; what is tested must not have been learnt from: delete "
                    f"one of the two."
                )
    refuse(problems)


def warnings_of(parts: Parts, where: str, *, by_ratio: bool) -> list[str]:
    """What a user must know of the split of the data in `where`, in sentences."""
    sizes = {part: len(parts[part]) for part in PARTS}
    told = []
    count = sizes["selection"]
    if 0 < count < FEW_TO_SELECT_BY:
        cure = "Give at least 50 tasks" if by_ratio else f"Give it at least {FEW_TO_SELECT_BY} tasks"
        told.append(
            f"the selection split has only {_tasks(count)} (train {sizes['train']}, test {sizes['test']}): one more or "
            f"less right moves its score by {1 / count:.2f}, so that chance has a say in which skill is taken. {cure}."
        )
    if not count:
        told.append(f"{where}: no task is in the selection split (train {sizes['train']}, test {sizes['test']}).")
    rows = [row for part in PARTS for row in parts[part]]
    repeated = len(rows) - len({input_key(row.task) for row in rows})
    if repeated:
        told.append(f"{_tasks(repeated)} ask the same as another one; those that do stand in one split together.")
    return told


def _place(seed: int, task_id: str) -> bytes:
    return hashlib.sha256(f"{seed}|{task_id}".encode()).digest()


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
