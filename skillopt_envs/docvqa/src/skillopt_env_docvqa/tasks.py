"""DocVQA's rows as tasks, and where their pages lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_lib_env.data_files import Item, read_items
from skillopt_lib_env.wording import few_of

from skillopt_env_docvqa.golds import accepted_answers

DEFAULT_KIND = "docvqa"
ANSWER_FIELDS = ("answers", "answer", "ground_truth")
IMAGE_FIELDS = ("image_paths", "image_path", "image")
KIND_FIELDS = ("task_type", "topic", "question_types", "category")
PATH_MARKER = "document_path:"

HOW_TO_MAKE_DATA = (
    "The data is not shipped: `skillopt data docvqa` writes the published split with its pages. Or make a folder with "
    "train, val and test, in each a CSV or JSON file of rows with questionId, question, answers and image_path, and "
    "name it: `-o env.split_dir=FOLDER`; or let one file of such rows be split: `-o env.split_mode=ratio "
    "env.data_path=FILE`."
)


@frozen
class Places:
    """Where pages may lie: `root` if one is configured, else beside the data file, in `folder`, in `working`."""

    root: Path | None
    folder: Path | None
    working: Path

    def read(self, path: Path) -> list[Item]:
        """The items of a data file, the page of each by its absolute path, where there is such a file.

        A page that is not found stays as it is written; `missing_pages` tells of it.
        """
        beside = path.parent
        return [Item(self._placed(item, beside), item.where) for item in read_items(path)]

    def find(self, name: str, beside: Path) -> str:
        """The absolute path of the page `name`, or `name` where there is none."""
        for place in self.searched(beside):
            if _is_file(place / name):
                return str((place / name).resolve())
        return name

    def searched(self, beside: Path | None = None) -> list[Path]:
        """The folders that are looked through, in order."""
        places = [self.root] if self.root is not None else [beside, self.folder, self.working]
        return [place for place in dict.fromkeys(places) if place is not None]

    def _placed(self, item: Item, beside: Path) -> dict[str, Any]:
        question, named = split_document_path(item.text("question", ""))
        fields = {**item.fields, "question": question} if "question" in item.fields else dict(item.fields)
        pages = [self.find(name, beside) for name in _page_names(item, named)]
        return {**fields, "image_paths": pages} if pages else fields


def split_document_path(question: str) -> tuple[str, str]:
    """A question and the path of its page: what follows the marker `document_path:`; "" without one."""
    text, _, path = question.partition(PATH_MARKER)
    return text.strip(), path.strip()


def task_of(item: Item) -> Task:
    """The task of one row. Raises `DataError` that names the row for what is missing or cannot be used."""
    if not any(field in item.fields for field in ("question", *ANSWER_FIELDS)):
        raise item.problem(f"the file lists ids only (a split manifest), not questions. {HOW_TO_MAKE_DATA}")
    pages = item.texts("image_paths") if "image_paths" in item.fields else ()
    if not pages:
        raise item.problem(
            "the row names no page; give the path of its image as 'image_path', of several as the list 'image_paths'."
        )
    return Task(
        id=item.required_text("questionId" if item.fields.get("questionId") is not None else "id"),
        kind=_kind(item),
        inputs={"question": item.required_text("question")},
        reference=_answers(item),
        files=dict(zip(_short_names(pages), pages, strict=True)),
    )


def missing_pages(tasks: Sequence[Task], places: Places) -> DataError | None:
    """What is wrong when pages of these tasks are not there; `None` when all are."""
    absent = [
        f"{path:.200} (of task {task.id})" for task in tasks for path in task.files.values() if not _is_file(Path(path))
    ]
    if not absent:
        return None
    total = sum(len(task.files) for task in tasks)
    names = few_of(absent)
    looked = ", ".join(map(str, places.searched()))
    where = looked if places.root is not None else f"beside the data file, {looked}"
    return DataError(
        f"{len(absent)} of {total} page images are not there: {names}. Looked in: {where}. Put them there, or name "
        f"their folder: `-o env.image_root=FOLDER`; `skillopt data docvqa` fetches those of the published split."
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have, such as one of 5,000 characters
        return False


def _page_names(item: Item, named: str) -> list[str]:
    for field in IMAGE_FIELDS:
        value = item.fields.get(field)
        if isinstance(value, (bytes, dict)):
            raise item.problem(f"the field {field!r} holds an image itself; save it as a file and give its path.")
        found = [name.strip() for name in item.texts(field)] if value is not None else []
        for name in found:
            if name.startswith(("http://", "https://", "data:")):
                raise item.problem(f"the page {name:.100} is an address; pages are not fetched: save it as a file.")
        if found:
            return found
    return [named] if named else []


def _short_names(paths: Sequence[str]) -> list[str]:
    """The file name of each page; numbered where two are equal."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else [f"{n:02}_{name}" for n, name in enumerate(names, start=1)]


def _answers(item: Item) -> list[str]:
    for field in ANSWER_FIELDS:
        value = item.fields.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            answers = accepted_answers(value)
        except ValueError as error:
            raise item.problem(f"the field {field!r} cannot be used: {error}.") from error
        if answers:
            return answers
    raise item.problem(
        "the row has no accepted answer, so that no answer could ever be right; give one or more as 'answers' (the "
        "published test rows have none)."
    )


def _kind(item: Item) -> str:
    for field in KIND_FIELDS:
        if item.fields.get(field):
            return "|".join(item.texts(field))
    return DEFAULT_KIND
