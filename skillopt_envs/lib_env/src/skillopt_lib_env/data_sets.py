"""Data sets of the Hugging Face Hub, read with its package `datasets` where that is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from skillopt_kernel.errors import ConfigError, DataError
from skillopt_kernel.store.patterns import clipped

from skillopt_lib_env.data_files import Item

LONGEST_REASON = 300


def read_data_set(
    name: str, *, split: str, config: str = "", revision: str = "", extra: str = "datasets"
) -> list[Item]:
    """The rows of one split of a data set, in order; what is downloaded is kept by `datasets` itself.

    name      of the data set on the Hub ("owner/name"), or a folder of data files
    config    the configuration of the data set; empty: its only one
    revision  commit or tag; empty: the newest
    extra     what `pip install` brings the package, for the sentence where it lacks

    Images and sounds are left as they are stored, not decoded. Raises `ConfigError` where the package lacks, and
    `DataError` for a data set that cannot be loaded.
    """
    datasets = _package(name, extra, "Or save it as JSON lines and name that file.")
    with _loading(f"the split {split!r} of the data set {name!r}"):
        loaded = datasets.load_dataset(name, config or None, split=split, revision=revision or None)
        rows: Iterable[dict[str, Any]] = _undecoded(loaded, datasets)
        items = [Item(dict(row), f"{name}, split {split}, row {number}") for number, row in enumerate(rows, start=1)]
    if not items:
        raise DataError(f"the split {split!r} of the data set {name!r} is empty: it holds 0 rows.")
    return items


def rows_of_ids(
    name: str,
    column: str,
    ids: Collection[str],
    *,
    config: str = "",
    revision: str = "",
    files: Mapping[str, str] | None = None,
    extra: str = "datasets",
    instead: str = "",
) -> list[Item]:
    """The rows of all splits of a data set whose `column` holds one of `ids`, in order; only these are read whole.

    files: split -> pattern of its files in the data set, so that no others are fetched; `None`: all of its splits.
    instead: a sentence that tells of another way, where the package lacks.
    `name`, `config`, `revision` and `extra` as in `read_data_set`, and raises as it does; and `DataError` where the
    data set has no such column, or a row holds nothing in it.
    """
    datasets = _package(name, extra, instead)
    with _loading(f"the data set {name!r}"):
        loaded = datasets.load_dataset(name, config or None, revision=revision or None, data_files=files)
        found: list[Item] = []
        for split, table in loaded.items():
            where = f"{name}, split {split}"
            if column not in table.column_names:
                raise DataError(f"{where}: there is no column {column!r}; it has {', '.join(table.column_names)}.")
            kept = []
            for number, row in enumerate(table.select_columns([column])):
                if row[column] is None or not str(row[column]).strip():
                    raise DataError(f"{where}, row {number + 1}: the column {column!r} holds nothing.")
                kept += [number] if str(row[column]) in ids else []
            rows = _undecoded(table.select(kept), datasets)
            found += [Item(dict(row), f"{where}, row {number + 1}") for number, row in zip(kept, rows, strict=True)]
    return found


def _package(name: str, extra: str, instead: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            f"reading the data set {name!r} needs the package datasets, which is not installed: "
            f"pip install '{extra}'. {instead}".strip()
        ) from error
    return datasets


@contextmanager
def _loading(what: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # the package raises what its many parts raise: of files, of networks, of formats
        raise DataError(
            f"{what} cannot be loaded: {_reason(error)}. Check the names of data set, configuration and split, and "
            f"that the Hub can be reached."
        ) from error


def _undecoded(loaded: Any, datasets: Any) -> Any:
    media = [cls for cls in (datasets.Image, datasets.Audio) if cls is not None]
    for column, feature in loaded.features.items():
        for cls in media:
            if isinstance(feature, cls):
                loaded = loaded.cast_column(column, cls(decode=False))
    return loaded


def _reason(error: BaseException) -> str:
    """The first line of what went wrong first: the package wraps it into errors that say nothing."""
    while error.__cause__ is not None and "An error occurred while generating" in str(error):
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return clipped(f"{type(error).__name__}: {lines[0] if lines else 'no reason was given'}", LONGEST_REASON).rstrip(
        "."
    )
