"""`skillopt data officeqa`: the published split, from the questions that its publisher gives on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from skillopt_kernel.console import echo
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.data_files import Item, read_items
from skillopt_lib_env.materialising import prepare_folder, split_options, write_split
from skillopt_lib_env.split_manifest import read_manifest
from skillopt_lib_env.wording import few_of

from skillopt_env_officeqa.corpus import open_corpus
from skillopt_env_officeqa.environment import NAME
from skillopt_env_officeqa.tasks import list_values, task_of


@click.command()
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The questions: officeqa_full.csv of the data set databricks/officeqa, to which its publisher gives access.",
)
@click.option(
    "--docs",
    "folders",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FOLDER",
    help="Your copy of the corpus: checked to hold every document that a question needs; may be repeated.",
)
@split_options(NAME, manifest="package:skillopt_env_officeqa/manifest")
def data(source: Path, folders: tuple[Path, ...], out: Path, manifest: Path, replace: bool) -> None:
    """Write the published split of OfficeQA: 50 training, 24 selection and 172 test questions.

    Neither the questions nor the documents are fetched. Ask for access at huggingface.co/datasets/databricks/officeqa
    and download officeqa_full.csv, and of the corpus the folder treasury_bulletins_parsed.
    """
    prepare_folder(out, replace)
    matched = read_manifest(manifest).matched(read_items(source), _id_of, str(source))
    items = {part: [_item(row) for row in matched[part]] for part in PARTS}
    if folders:
        _check_documents(folders, [item for part in PARTS for item in items[part]])
    write_split(NAME, out, items, {"benchmark": "OfficeQA", "source": str(source)})
    if folders:
        named = ", ".join(map(str, folders))
        echo(f"Every document that a question needs is there. Name them to a run: -o 'env.data_dirs=[{named}]'")


def _id_of(row: Item) -> str:
    return row.required_text("uid" if row.fields.get("uid") is not None else "id")


def _item(row: Item) -> dict[str, Any]:
    """A row as an item that the environment reads. Raises `DataError` as the environment would."""
    task = task_of(row, corpus="", gold_sources=False)
    return {"uid": task.id, "question": task.inputs["question"], **task.reference, "category": task.kind}


def _check_documents(folders: tuple[Path, ...], items: list[dict[str, Any]]) -> None:
    there = {document.path.name for document in open_corpus(folders, "--docs").documents.values()}
    wanted = {name: None for item in items for name in list_values(item["source_files"])}
    missing = [name for name in wanted if name not in there]
    if missing:
        raise DataError(
            f"--docs: {', '.join(map(str, folders))} lacks {len(missing)} of the {len(wanted)} documents that the "
            f"questions need: {few_of(missing)}. Download the folder transformed whole."
        )
