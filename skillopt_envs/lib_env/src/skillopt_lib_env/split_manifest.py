"""A published split: which items of a data set are in which part, by id; and the rows that belong to them.

A folder with `train/items.json`, `val/items.json` and `test/items.json`, each a list of objects with an `id` and
what else finds the item, and with `split_manifest.json`, which says where the data comes from and may declare `counts`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS

from skillopt_lib_env.data_files import Item, data_file_in, read_items
from skillopt_lib_env.ratio_split import FOLDERS
from skillopt_lib_env.wording import few_of

FACTS = "split_manifest.json"
IDS_NAMED = 5


@frozen
class SplitManifest:
    """The entries of each part ("train", "selection", "test") in order, and the facts of `split_manifest.json`."""

    folder: Path
    facts: Mapping[str, Any]
    parts: Mapping[str, tuple[Item, ...]]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all parts, in order."""
        return tuple(entry.required_text("id") for part in PARTS for entry in self.parts[part])

    def matched(self, rows: Iterable[Item], id_of: Callable[[Item], str], source: str) -> dict[str, list[Item]]:
        """The row of each entry, part by part in the manifest's order; other rows are passed over.

        id_of   the id of a row; raises `DataError` for a row that has none
        source  what the rows come from, for the errors

        Raises `DataError` for ids that `source` holds twice, and for ids that it lacks.
        """
        wanted, found, twice = set(self.ids), dict[str, Item](), list[str]()
        for row in rows:
            name = id_of(row)
            if name in wanted:
                twice += [f"{name!r} ({found[name].where} and {row.where})"] if name in found else []
                found[name] = row
        if twice:
            raise DataError(f"{source} holds {_count(twice)} of the split more than once: {few_of(twice, IDS_NAMED)}.")
        missing = [repr(name) for name in self.ids if name not in found]
        if missing:
            raise DataError(
                f"{source} lacks {_count(missing)} of the {len(wanted)} that the split in {self.folder} names: "
                f"{few_of(missing, IDS_NAMED)}. Is it the data set, and the version of it, that the split was made of?"
            )
        return {part: [found[entry.required_text("id")] for entry in self.parts[part]] for part in PARTS}


def read_manifest(folder: Path) -> SplitManifest:
    """The manifest in `folder`. Raises `DataError` for one that is incomplete, contradicts itself or repeats an id."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} with a split manifest.")
    absent = [name for name in FOLDERS.values() if not (folder / name).is_dir()]
    if absent:
        raise DataError(
            f"{folder} is no split manifest: it holds no {' and no '.join(map(repr, absent))}. It needs the folders "
            f"train, val and test, each with an items.json that lists ids."
        )
    parts = {part: tuple(read_items(data_file_in(folder / name))) for part, name in FOLDERS.items()}
    path = folder / FACTS
    facts = _facts(path) if path.is_file() else {}
    manifest = SplitManifest(folder, facts, parts)
    _check_counts(manifest, facts.get("counts"), path)
    _check_ids(manifest)
    return manifest


def _facts(path: Path) -> Mapping[str, Any]:
    try:
        facts = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(facts, dict):
        raise DataError(f"{path} must hold an object of facts about the split.")
    return facts


def _check_counts(manifest: SplitManifest, declared: Any, path: Path) -> None:
    if declared is None:
        return
    if not isinstance(declared, dict):
        raise DataError(f"{path}: 'counts' must be an object of numbers, as in {{\"train\": 400}}.")
    for part, name in FOLDERS.items():
        count = len(manifest.parts[part])
        if declared.get(name, count) != count:
            raise DataError(f"{path} declares {declared[name]} items of {name}, but {name}/ lists {count}.")


def _check_ids(manifest: SplitManifest) -> None:
    twice = [repr(name) for name, times in Counter(manifest.ids).items() if times > 1]
    if twice:
        raise DataError(
            f"the split in {manifest.folder} names {_count(twice)} more than once, in one part or in two: "
            f"{few_of(twice, IDS_NAMED)}."
        )


def _count(names: Sequence[str]) -> str:
    return "1 id" if len(names) == 1 else f"{len(names)} ids"
