"""SearchQA's rows as tasks."""

from __future__ import annotations

from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_lib_env.data_files import Item

DEFAULT_KIND = "qa"

HOW_TO_MAKE_DATA = (
    "The data is not shipped: `skillopt data searchqa` writes the published split. For other data, make a folder with "
    'train/items.json, val/items.json and test/items.json, each a list of {"id", "question", "context", "answers"}, '
    "and name it: `-o env.split_dir=FOLDER train.train_size=0`; or let one file of such rows be split: "
    "`-o env.split_mode=ratio env.data_path=FILE train.train_size=0`. `skillopt train demo` needs no data."
)


def task_of(item: Item) -> Task:
    """The task of one row. Raises `DataError` that names the row for a missing field or no answer."""
    if set(item.fields) <= {"id", "key"}:
        raise _ids_only(item)
    answers = item.texts("answers")
    if not answers:
        raise item.problem("the list 'answers' is empty, so that no answer could ever be right; give one or more.")
    return Task(
        id=item.required_text("id" if "id" in item.fields or "key" not in item.fields else "key"),
        kind=item.text("task_type", "") or item.text("kind", "") or DEFAULT_KIND,
        inputs={"question": item.required_text("question"), "context": item.text("context", "")},
        reference=list(answers),
    )


def _ids_only(item: Item) -> DataError:
    return item.problem(f"the file lists ids only (a split manifest), not questions. {HOW_TO_MAKE_DATA}")
