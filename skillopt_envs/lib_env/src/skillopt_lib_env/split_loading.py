"""The tasks of a benchmark from files: a folder that is split already, or one file split by a ratio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Splits, Task
from skillopt_kernel.splits import PARTS, check_splits

from skillopt_lib_env.data_files import Item, data_file_in, read_items
from skillopt_lib_env.ratio_split import FOLDERS, parse_split_ratio, split_by_ratio, write_splits, written_ratio

ToTask = Callable[[Item], Task | None]
"""Makes a task of a raw item; `None` leaves the item out; raises `item.problem(sentence)` for a bad one."""


Find = Callable[[Path], Path]
"""What of a folder that is to be split is read; raises `DataError`."""


def only_file_in(folder: Path) -> Path:
    """The one data file of `folder`. Raises `DataError` where there is none, or several."""
    return data_file_in(folder, single=True)


class SplitSettings(Protocol):
    """What of the section `env` says where tasks come from; the kernel's settings of the section have it all."""

    @property
    def split_mode(self) -> str: ...
    @property
    def split_ratio(self) -> str: ...
    @property
    def split_seed(self) -> int: ...
    @property
    def split_dir(self) -> Path | None: ...
    @property
    def data_path(self) -> Path | None: ...
    @property
    def split_output_dir(self) -> Path | None: ...
    @property
    def limit(self) -> int: ...


def load_splits(
    settings: SplitSettings,
    to_task: ToTask,
    *,
    name: str,
    folder: Path | None = None,
    cure: str = "",
    read: Callable[[Path], Sequence[Item]] = read_items,
    find: Find = only_file_in,
) -> Splits:
    """The checked splits that `settings` ask for, each cut to its first `limit` tasks.

    name    of the environment, for the folder of a written split
    folder  the run's folder: a split by ratio is written to `split_output_dir`, else below `folder`, else nowhere
    cure    how data for this environment is made, added to the errors about data that is missing
    read    reads one data file
    find    what of a folder that is to be split `read` is given: its one data file; or the folder, where it reads those

    Raises `DataError` for data that is missing, malformed, overlapping, too small or filtered out.
    """
    if settings.split_mode == "split_dir":
        loaded = _from_folder(settings.split_dir, to_task, cure, read)
        where = str(settings.split_dir)
    elif settings.split_mode == "ratio":
        loaded = _from_ratio(settings, to_task, name, folder, cure, read, find)
        where = str(settings.data_path)
    else:
        raise DataError(f"env.split_mode is {settings.split_mode!r}; it must be 'split_dir' or 'ratio'.")
    # Whether a selection split is needed only the run knows; a file of one that is empty is refused above.
    check_splits(loaded, where, selection_needed=False)
    return Splits(*(getattr(loaded, part)[: settings.limit or None] for part in PARTS))


def split_folder(settings: SplitSettings, name: str, folder: Path | None) -> Path | None:
    """Where a split by ratio is written: to `split_output_dir`, else below the run's `folder`, else nowhere."""
    if settings.split_output_dir is not None or folder is None:
        return settings.split_output_dir
    ratio = written_ratio(parse_split_ratio(settings.split_ratio), "-")
    return folder / "_generated_splits" / f"{name}_{ratio}_seed{settings.split_seed}"


def split_files(root: Path | None, cure: str = "") -> dict[str, Path]:
    """The data file of each part in a folder that is split already. Raises `DataError` that ends with `cure`."""
    if root is None:
        raise _missing("env.split_mode is 'split_dir', but env.split_dir names no folder", cure)
    if not root.is_dir():
        raise _missing(f"env.split_dir: there is no folder {root}", cure)
    absent = [folder for folder in FOLDERS.values() if not (root / folder).is_dir()]
    if absent:
        folders = " and no ".join(f"'{folder}'" for folder in absent)
        raise _missing(f"env.split_dir: {root} holds no {folders}; it needs the folders train, val and test", cure)
    return {part: data_file_in(root / FOLDERS[part]) for part in PARTS}


def data_file(path: Path | None, cure: str = "", find: Find = only_file_in) -> Path:
    """The file that is to be split by ratio. Raises `DataError` that ends with `cure` where there is none."""
    if path is None:
        raise _missing("env.split_mode is 'ratio', but env.data_path names no data to split", cure)
    if not path.exists():
        raise _missing(f"env.data_path: there is no file or folder {path}", cure)
    if path.is_file():
        return path
    if any((path / folder).is_dir() for folder in FOLDERS.values()):
        raise DataError(
            f"env.data_path: {path} is split already. Set env.split_mode to split_dir and env.split_dir to that folder."
        )
    return find(path)


def _from_folder(root: Path | None, to_task: ToTask, cure: str, read: Callable[[Path], Sequence[Item]]) -> Splits:
    # A test split may be empty; an empty file cannot be told from one that was cut off, an empty list can.
    return Splits(**{part: _tasks(read(path), to_task, path, part) for part, path in split_files(root, cure).items()})


def _from_ratio(
    settings: SplitSettings,
    to_task: ToTask,
    name: str,
    folder: Path | None,
    cure: str,
    read: Callable[[Path], Sequence[Item]],
    find: Find,
) -> Splits:
    ratio = parse_split_ratio(settings.split_ratio)
    path = data_file(settings.data_path, cure, find)
    items = read(path)
    kept = [(item, task) for item in items if (task := to_task(item)) is not None]
    _refuse_nothing(len(items), len(kept), path, "data")
    cut = split_by_ratio(kept, ratio, settings.split_seed)
    target = split_folder(settings, name, folder)
    if target is not None:
        write_splits(
            target,
            {part: [item.fields for item, _ in cut[part]] for part in PARTS},
            source=str(settings.data_path),
            ratio=settings.split_ratio,
            seed=settings.split_seed,
        )
    return Splits(*(tuple(task for _, task in cut[part]) for part in PARTS))


def _tasks(items: Sequence[Item], to_task: ToTask, path: Path, part: str) -> tuple[Task, ...]:
    tasks = tuple(task for item in items if (task := to_task(item)) is not None)
    if part != "test":
        _refuse_nothing(len(items), len(tasks), path, f"{part} split")
    return tasks


def _refuse_nothing(read: int, kept: int, path: Path, what: str) -> None:
    if kept:
        return
    if read:
        raise DataError(
            f"{path}: nothing is left of the {what}: {read} items were read and all {read} left out as unusable."
        )
    raise DataError(f"{path}: the {what} is empty: the file holds 0 items. Training needs at least one.")


def _missing(problem: str, cure: str) -> DataError:
    return DataError(f"{problem}. {cure}".strip())
