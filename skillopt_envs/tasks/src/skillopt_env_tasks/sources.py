"""Where tasks come from: one file, a folder that is split already, or a data set; read into rows and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen
from skillopt_kernel.errors import ConfigError, DataError
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.data_files import Item, read_items
from skillopt_lib_env.split_loading import data_file, split_files

from skillopt_env_tasks.settings import TasksSettings

if TYPE_CHECKING:
    from skillopt_lib_env.split_loading import SplitSettings

HOW_TO_GIVE_DATA = (
    "Name a file: `skillopt train --tasks FILE --skill SKILL.md --scorer exact --model NAME`, or env.data_path in a "
    "configuration. FILE is CSV, JSON or JSON lines, with a field such as question and one such as answer. A data "
    "set of the Hugging Face Hub is named by env.dataset. `skillopt plugins show env tasks` lists every key."
)


@frozen
class Source:
    """Raw items: all in one, which are to be split, or by part. `where` names them in messages."""

    items: Sequence[Item]
    where: str
    parts: Mapping[str, Sequence[Item]] | None = None


def source_of(settings: TasksSettings, common: SplitSettings) -> Source:
    """The raw items that the configuration names. Raises `ConfigError` or `DataError`."""
    if settings.dataset:
        return _data_set(settings, common)
    if common.split_mode == "split_dir":
        files = split_files(common.split_dir, HOW_TO_GIVE_DATA)
        parts = {part: read_items(path) for part, path in files.items()}
        return Source([item for part in PARTS for item in parts[part]], str(common.split_dir), parts)
    path = data_file(common.data_path, HOW_TO_GIVE_DATA)
    items = read_items(path)
    if not items:
        raise DataError(f"{path}: the file holds 0 tasks: there is nothing to learn from. {HOW_TO_GIVE_DATA}")
    return Source(items, str(path))


def _data_set(settings: TasksSettings, common: SplitSettings) -> Source:
    other = {"env.data_path": common.data_path, "env.split_dir": common.split_dir}
    if given := [key for key, value in other.items() if value is not None]:
        raise ConfigError(
            f"env.dataset names a data set and {' and '.join(given)} something else; which is meant? Leave one out."
        )
    names = settings.dataset_splits
    if not 1 <= len(names) <= len(PARTS):
        raise ConfigError(
            f"env.dataset_splits names {len(names)} splits; name one, which is split by env.split_ratio, or two or "
            f"three: those for train, selection and test."
        )
    from skillopt_lib_env.data_sets import read_data_set

    read = [
        read_data_set(
            settings.dataset, split=name, config=settings.dataset_config, revision=settings.dataset_revision,
            extra="skillopt-env-tasks[datasets]",
        )
        for name in names
    ]  # fmt: skip
    if len(names) == 1:
        return Source(read[0], f"{settings.dataset}, split {names[0]}")
    parts = {part: read[at] if at < len(read) else [] for at, part in enumerate(PARTS)}
    return Source([item for part in PARTS for item in parts[part]], settings.dataset, parts)
