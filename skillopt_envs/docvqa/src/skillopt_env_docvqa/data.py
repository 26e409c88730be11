"""`skillopt data docvqa`: the published split with its page images, from the public data set."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_kernel.store.files import safe_name
from skillopt_lib_env.data_files import Item
from skillopt_lib_env.data_sets import rows_of_ids
from skillopt_lib_env.materialising import prepare_folder, split_options, write_split
from skillopt_lib_env.split_manifest import SplitManifest, read_manifest

from skillopt_env_docvqa.golds import accepted_answers

DATA_SET = "lmms-lab/DocVQA"
REVISION = "539088ef8a8ada01ac8e2e6d4e372586748a265e"
VALIDATION = {"validation": "DocVQA/validation-*"}
"""The files of the split that the published one was made of; the test split's have no answers."""

EXTRA = "skillopt-env-docvqa[datasets]"
IMAGES = "images"
KEPT = ("questionId", "docId", "ucsf_document_id", "ucsf_document_page_no")


@click.command()
@click.option(
    "--dataset",
    default=DATA_SET,
    show_default=True,
    metavar="NAME",
    help="Data set on the Hugging Face Hub, or a folder with its files: those of its validation split.",
)
@click.option(
    "--revision", default="", metavar="NAME", help="Commit or tag of the data set. Default: that of the split."
)
@split_options("docvqa", manifest="package:skillopt_env_docvqa/manifest", folder="data/docvqa/splits")
def data(dataset: str, revision: str, out: Path, manifest: Path, replace: bool) -> None:
    """Write the published split of DocVQA with its pages: 107 training, 53 selection and 374 test questions.

    Needs the package datasets (`pip install 'skillopt-env-docvqa[datasets]'`), which fetches the validation split
    (about 2.5 GB) once and keeps it in a cache of its own.
    """
    prepare_folder(out, replace)
    split = read_manifest(manifest)
    revision = revision or (REVISION if dataset == DATA_SET else "")
    files = VALIDATION if dataset == DATA_SET or (Path(dataset) / "DocVQA").is_dir() else None
    rows = rows_of_ids(dataset, "questionId", set(split.ids), revision=revision, files=files, extra=EXTRA)
    matched = split.matched(rows, lambda row: row.text("questionId"), dataset)
    _check_documents(split, matched)
    items = {part: [item_of(row) for row in matched[part]] for part in PARTS}
    pages = {item["image_path"]: row for part in PARTS for item, row in zip(items[part], matched[part], strict=True)}
    facts = {
        "benchmark": "DocVQA",
        "source": dataset,
        **({"source_revision": revision} if revision else {}),
        "source_split": "validation",
    }

    def write_pages(folder: Path) -> None:
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        for name, row in pages.items():
            (folder / name).write_bytes(page_bytes(row))

    write_split("docvqa", out, items, facts, write_pages)


def _check_documents(split: SplitManifest, matched: Mapping[str, Sequence[Item]]) -> None:
    """Raise `DataError` for a question about another page than the split says."""
    for part, entries in split.parts.items():
        for entry, row in zip(entries, matched[part], strict=True):
            named, found = entry.text("docId", ""), row.text("docId", "")
            if named and named != found:
                raise row.problem(
                    f"the question {entry.fields['id']} is about the document {found!r}, but the split names "
                    f"{named!r}; is it another version of the data set?"
                )


def item_of(row: Item) -> dict[str, Any]:
    """A row of the data set as an item that the environment reads. Raises `DataError` for one without answers."""
    answers = row.fields.get("answers")
    if not isinstance(answers, Sequence) or isinstance(answers, str) or not accepted_answers(list(answers)):
        raise row.problem(f"the question {row.text('questionId')} has no answers; the test split's have none.")
    return {
        "id": row.text("questionId"),
        "question": row.required_text("question"),
        "answers": list(answers),
        "topic": "|".join(row.texts("question_types")) if row.fields.get("question_types") else "",
        "image_path": f"{IMAGES}/{page_name(row)}",
        **{name: row.text(name) for name in KEPT if row.fields.get(name) is not None},
    }


def page_name(row: Item) -> str:
    """The page's file name, as the published manifest has it: `q<questionId>_d<docId>`, with the image's own ending."""
    return safe_name(f"q{row.text('questionId')}_d{row.text('docId')}") + _suffix(page_bytes(row), row)


def page_bytes(row: Item) -> bytes:
    """The bytes of a row's image as they are stored. Raises `DataError` for a row without one."""
    image = row.fields.get("image")
    if isinstance(image, Mapping):
        stored = image.get("bytes")
        if isinstance(stored, bytes):
            return stored
        if isinstance(image.get("path"), str):
            try:
                return Path(image["path"]).read_bytes()
            except OSError as error:
                raise row.problem(f"the page {image['path']} cannot be read: {error.strerror}.") from error
    raise row.problem("the column 'image' holds no image; is it the data set DocVQA with its pages?")


def _suffix(data: bytes, row: Item) -> str:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return f".{(image.format or 'png').lower().replace('jpeg', 'jpg')}"
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{row.where}: the page cannot be read as an image: {error}.") from error
