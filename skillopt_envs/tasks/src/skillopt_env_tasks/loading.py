"""From the configuration to checked splits of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.data_files import Item
from skillopt_lib_env.ratio_split import parse_split_ratio

from skillopt_env_tasks import feedback, splitting
from skillopt_env_tasks.columns import columns_of, value_of
from skillopt_env_tasks.rows import Reading, problem_with, unique
from skillopt_env_tasks.settings import TasksSettings
from skillopt_env_tasks.sources import source_of
from skillopt_env_tasks.template import check_template, fields_in

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Scorer
    from skillopt_lib_env.split_loading import SplitSettings


@frozen
class Loaded:
    """The rows of each part, where they are from, whether they were split by the ratio, and the fields not used."""

    parts: splitting.Parts
    where: str
    by_ratio: bool
    left_out: tuple[str, ...]

    def warnings(self, comments: Sequence[feedback.Comment], start: str) -> list[str]:
        """What a user must know of the data and of comments on it, in sentences; `start` as in `feedback`."""
        told = splitting.warnings_of(self.parts, self.where, by_ratio=self.by_ratio)
        if self.left_out:
            told.append(
                f"{self.where}: not used, so that nothing tells the target what is right: the fields "
                f"{', '.join(map(repr, self.left_out))}. Name in env.fields.inputs what the target should see."
            )
        ids = {part: {row.task.id for row in self.parts[part]} for part in PARTS}
        return told + feedback.warnings_of(comments, ids["train"], ids["selection"] | ids["test"], start)


def load(settings: TasksSettings, common: SplitSettings, scorer: Scorer) -> Loaded:
    """The splits of the configured data, each cut to its first `limit` tasks. Raises `DataError` or `ConfigError`."""
    source = source_of(settings, common)
    check = getattr(scorer, "check", None)
    scored = check is not None and problem_with(check, None, Task("")) is not None
    shown = () if settings.fields.inputs else fields_in(settings.prompt)
    check_template(settings.prompt, settings.fields.inputs or _there(source.items, shown))
    columns = columns_of(source.items, settings.fields, shown, source.where, scored=scored)
    if source.parts is not None:
        columns = evolve(columns, split="")
    reading = Reading(columns, settings.reference_separator, check)
    by_ratio = source.parts is None and not columns.split
    if source.parts is not None:
        parts: splitting.Parts = {part: reading.rows(source.parts[part]) for part in PARTS}
    else:
        rows = reading.rows(source.items)
        parts = {part: [row for row in rows if row.part == part] for part in PARTS}
        if by_ratio:
            unique(rows, columns)
            ratio = parse_split_ratio(common.split_ratio)
            parts = splitting.split_by_id(rows, ratio, common.split_seed, source.where)
    unique([row for part in PARTS for row in parts[part]], columns)
    splitting.refuse_shared_inputs(parts)
    if not parts["train"]:  # whether tasks to select by are needed only the run knows
        what = f"the field {columns.split!r} puts no task into" if columns.split else "there is no task in"
        raise DataError(f"{source.where}: {what} the train split; training needs tasks to learn from and to select by.")
    return Loaded(
        {part: parts[part][: common.limit or None] for part in PARTS}, source.where, by_ratio, columns.left_out
    )


def _there(items: Sequence[Item], named: Sequence[str]) -> tuple[str, ...]:
    """The fields of the data, and those of `named` that are a field of a field in it."""
    inner = (name for name in named if any(value_of(item, name) is not None for item in items))
    return tuple(dict.fromkeys([*(name for item in items for name in item.fields), *inner]))
