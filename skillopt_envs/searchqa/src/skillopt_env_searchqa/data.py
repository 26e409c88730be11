"""`skillopt data searchqa`: the published split, with its rows from the public data set or from files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.data_files import Item, read_items
from skillopt_lib_env.data_sets import rows_of_ids
from skillopt_lib_env.materialising import prepare_folder, split_options, write_split
from skillopt_lib_env.split_manifest import SplitManifest, read_manifest

NAME = "searchqa"
DATA_SET = "lucadiliello/searchqa"
EXTRA = "skillopt-env-searchqa[datasets]"
FIELDS = ("id", "question", "context", "answers")


@click.command()
@click.option(
    "--dataset",
    metavar="NAME",
    help=f"Data set on the Hugging Face Hub, or a folder with its files. Default: {DATA_SET}.",
)
@click.option("--revision", default="", metavar="NAME", help="Commit or tag of the data set. Default: the newest.")
@click.option(
    "--from",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Read the rows from this file (JSON lines, JSON or CSV) in place of the data set; may be repeated.",
)
@split_options(NAME, manifest="package:skillopt_env_searchqa/manifest")
def data(dataset: str | None, revision: str, files: tuple[Path, ...], out: Path, manifest: Path, replace: bool) -> None:
    """Write the published split of SearchQA: 400 training, 200 selection and 1,400 test questions.

    The rows come from the data set lucadiliello/searchqa, for which `pip install 'skillopt-env-searchqa[datasets]'`
    brings the loader, or from files of its rows, with the fields key, question, context and answers.
    """
    if files and (dataset or revision):
        raise click.UsageError("--from names files, --dataset and --revision a data set: give one of them.")
    prepare_folder(out, replace)
    split = read_manifest(manifest)
    source, rows = _from_files(files) if files else _from_data_set(dataset or DATA_SET, revision, split)
    matched = split.matched(rows, _key, source)
    items = {part: [_item(row) for row in matched[part]] for part in PARTS}
    facts = {"benchmark": "SearchQA", "source": source, **({"revision": revision} if revision else {})}
    write_split(NAME, out, items, {**facts, "item_fields": list(FIELDS)})


def _from_files(files: tuple[Path, ...]) -> tuple[str, list[Item]]:
    absent = [str(path) for path in files if not path.is_file()]
    if absent:
        raise DataError(f"--from: there is no file {' and no '.join(absent)}.")
    return ", ".join(map(str, files)), [row for path in files for row in read_items(path)]


def _from_data_set(name: str, revision: str, split: SplitManifest) -> tuple[str, list[Item]]:
    instead = "Or read the rows from a file of yours: `--from FILE`."
    return name, rows_of_ids(name, "key", frozenset(split.ids), revision=revision, extra=EXTRA, instead=instead)


def _key(row: Item) -> str:
    return row.required_text("key")


def _item(row: Item) -> dict[str, Any]:
    """A row of the data set as an item of a split. Raises `DataError` for one that lacks a field."""
    given = row.fields.get("answers")
    if isinstance(given, str) and given.lstrip().startswith("["):
        raise row.problem("'answers' is a list written as text, as CSV has it; give the rows as JSON lines.")
    answers = row.texts("answers")
    if not answers:
        raise row.problem("the list 'answers' is empty, so that no answer could ever be right.")
    values = (_key(row), row.required_text("question"), row.text("context"), list(answers))
    return dict(zip(FIELDS, values, strict=True))
