"""`skillopt data livemathematicianbench`: the published split, or the clean items, from the benchmark's own files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.console import echo
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.data_files import Item
from skillopt_lib_env.materialising import prepare_folder, split_options, write_split
from skillopt_lib_env.ratio_split import split_by_ratio
from skillopt_lib_env.split_manifest import SplitManifest, read_manifest

from skillopt_env_livemathematicianbench.files import read_sources
from skillopt_env_livemathematicianbench.questions import STOCK_OPTION, as_fields, question_of

NAME = "livemathematicianbench"
CLEAN_RATIO, CLEAN_SEED = (2, 1, 7), 42
"""How the items without the stock option were split anew by those who reported it."""


@click.command()
@click.option(
    "--from",
    "sources",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="PATH",
    help="The benchmark's files qa_<month>_final.json, or a folder that holds them; may be repeated.",
)
@click.option(
    "--clean",
    is_flag=True,
    help="Leave out the items with the stock option, which is right wherever it stands, and split the others 2:1:7.",
)
@split_options(NAME, manifest="package:skillopt_env_livemathematicianbench/manifest")
def data(sources: tuple[Path, ...], clean: bool, out: Path, manifest: Path, replace: bool) -> None:
    """Write the published split of LiveMathematicianBench: 35 training, 17 selection and 125 test questions.

    The questions are read from the benchmark's own files, which you fetch yourself: no licence allows us to ship them.
    """
    prepare_folder(out, replace)
    rows = read_sources(sources)
    source = ", ".join(map(str, sources))
    if clean:
        parts, facts = _clean(rows, source), {"split_ratio": "2:1:7", "split_seed": CLEAN_SEED, "clean_items": True}
    else:
        parts, facts = _published(rows, read_manifest(manifest), source), {}
    items = {part: [_item(row) for row in parts[part]] for part in PARTS}
    write_split(NAME, out, items, {"benchmark": "LiveMathematicianBench", "source": source, **facts})
    stock = sum(question_of(row).has_stock_option for part in PARTS for row in parts[part])
    if stock:
        echo(
            f'Of these, {stock} offer "{STOCK_OPTION}", which is right wherever it stands. -o env.clean_items=true '
            f"leaves them out of a run, --clean out of the split."
        )


def _published(rows: list[Item], manifest: SplitManifest, source: str) -> Mapping[str, list[Item]]:
    """The rows of the manifest's entries. Raises `DataError` for a row that is of another paper than its entry says."""
    matched = manifest.matched(rows, lambda row: question_of(row).id, source)
    for part, entries in manifest.parts.items():
        for entry, row in zip(entries, matched[part], strict=True):
            named, found = (item.text("paper_link", "") for item in (entry, row))
            if named and found and named != found:
                raise row.problem(
                    f"the question {entry.fields['id']} is about the paper {found}, but the split names {named}: the "
                    f"files are of another version of the benchmark."
                )
    return matched


def _clean(rows: list[Item], source: str) -> Mapping[str, list[Item]]:
    kept = [row for row in rows if not question_of(row).has_stock_option]
    ids = [question_of(row).id for row in kept]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise DataError(f"{source} holds the question {twice[0]} more than once; name each file once.")
    return split_by_ratio(kept, CLEAN_RATIO, CLEAN_SEED)


def _item(row: Item) -> dict[str, Any]:
    where_from = {name: row.fields[name] for name in ("month", "no", "paper_link") if name in row.fields}
    return {**as_fields(question_of(row)), **where_from}
