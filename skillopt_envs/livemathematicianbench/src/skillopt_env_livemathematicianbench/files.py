"""The benchmark's own files: `qa_<month>_final.json`, one for each month, anywhere below a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillopt_kernel.errors import DataError
from skillopt_lib_env.data_files import Item, data_file_in, read_items

from skillopt_env_livemathematicianbench.questions import HOW_TO_MAKE_DATA

PATTERN = "qa_*_final.json"


def read_questions(path: Path) -> list[Item]:
    """The items of one file, or of all the benchmark's files below a folder in the order of their paths.

    A folder without any is read by its one data file. An item that names neither `id` nor `no` gets its place in its
    file, from 1, as `no`. Raises `DataError`.
    """
    files = [path] if path.is_file() else sorted(path.rglob(PATTERN)) or [_other_file(path)]
    return [_numbered(item, number) for file in files for number, item in enumerate(read_items(file), start=1)]


def read_sources(paths: Sequence[Path]) -> list[Item]:
    """The items of several files and folders. Raises `DataError` also for one that is not there."""
    absent = [str(path) for path in paths if not path.exists()]
    if absent:
        raise DataError(f"--from: there is no file or folder {' and no '.join(absent)}. {HOW_TO_MAKE_DATA}")
    return [item for path in paths for item in read_questions(path)]


def _other_file(folder: Path) -> Path:
    try:
        return data_file_in(folder, single=True)
    except DataError as error:
        raise DataError(f"{folder}: there is no file {PATTERN} below this folder. {HOW_TO_MAKE_DATA}") from error


def _numbered(item: Item, number: int) -> Item:
    if item.fields.get("id") is not None or item.fields.get("no") is not None:
        return item
    return Item({**item.fields, "no": number}, item.where)
