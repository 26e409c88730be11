"""OfficeQA's rows as tasks."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from skillopt_kernel.records import Task
from skillopt_lib_env.data_files import Item

DEFAULT_KIND = "officeqa"

HOW_TO_MAKE_DATA = (
    "The questions are not shipped: their publisher gives them on request. With officeqa_full.csv at hand, "
    "`skillopt data officeqa --from officeqa_full.csv` writes the published split. Or make a folder with train/, val/ "
    "and test/, each with an items.json or a CSV file of uid, question, answer, source_files, source_docs and "
    "difficulty, and name it: `-o env.split_dir=FOLDER`."
)

_LINES = re.compile(r"[\r\n]+")
_COMMAS = re.compile(r",\s*")
_BETWEEN_ADDRESSES = re.compile(r",\s*(?=https?://)")


def list_values(value: Any) -> list[str]:
    """The values in a cell: of a list or a JSON list, else one a line, else separated by commas.

    Addresses may hold commas: they are parted only where another address begins.
    """
    if value is None:
        return []
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            with suppress(ValueError):
                value = json.loads(text)
        if isinstance(value, str):
            value = _LINES.split(text)
            if len(value) == 1:
                value = (_BETWEEN_ADDRESSES if "://" in text else _COMMAS).split(text)
    return [text for entry in value if (text := str(entry).strip())]


def task_of(item: Item, *, corpus: str, gold_sources: bool) -> Task:
    """The task of one row. Raises `DataError` that names the row for a missing question or answer.

    corpus        which documents there are, as a digest: another corpus makes other tasks
    gold_sources  whether the target may see which files and pages hold the answer, or only scoring and analysts
    """
    if not {"question", "answer", "ground_truth"} & set(item.fields):
        raise item.problem(f"the file lists ids only (a split manifest), not questions. {HOW_TO_MAKE_DATA}")
    answer = "ground_truth" if item.fields.get("ground_truth") is not None else "answer"
    sources = {name: list_values(item.fields.get(name)) for name in ("source_files", "source_docs")}
    return Task(
        id=item.required_text("uid" if item.fields.get("uid") is not None else "id"),
        kind=_kind(item),
        inputs={"question": item.required_text("question"), "corpus": corpus, **(sources if gold_sources else {})},
        reference={"answer": item.required_text(answer), **sources},
    )


def _kind(item: Item) -> str:
    named = (item.text(name, "").strip() for name in ("category", "difficulty", "task_type"))
    return next(filter(None, named), DEFAULT_KIND)
