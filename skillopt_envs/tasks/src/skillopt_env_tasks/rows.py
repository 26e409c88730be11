"""Rows as tasks. Every problem of a file is found before the first is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_lib_env.data_files import Item

from skillopt_env_tasks.columns import Columns, value_of

MOST_PROBLEMS_TOLD = 20

PART_OF = {
    "train": "train",
    **dict.fromkeys(("selection", "val", "valid", "validation", "dev", "valid_seen"), "selection"),
    **dict.fromkeys(("test", "valid_unseen"), "test"),
}
"""What people write in a split column -> the part of the data that it means."""

Check = Callable[[Any, Task], None]
"""Raises `ValueError` for a reference that the scorer cannot use for the task."""


@frozen
class Row:
    """A raw row with its task, and the part that its split column names ("" without one)."""

    item: Item
    task: Task
    part: str = ""


@frozen
class Reading:
    """How rows are read.

    separator  divides a reference into several right answers; "" nothing
    check      the scorer's view of a reference, which may be `None`; without a check it takes any
    """

    columns: Columns
    separator: str = ""
    check: Check | None = None

    def rows(self, items: Sequence[Item]) -> list[Row]:
        """The rows of items. Raises one `DataError` for all that cannot be used, each with its place."""
        rows, problems = [], []
        for item in items:
            try:
                rows.append(Row(item, self._task(item), self._part(item)))
            except DataError as error:
                problems.append(str(error))
        refuse(problems)
        return rows

    def _task(self, item: Item) -> Task:
        columns = self.columns
        inputs = {name: _plain(item, name) for name in columns.inputs}
        if not any(str(value).strip() for value in inputs.values() if value is not None):
            names = " and ".join(map(repr, inputs))
            raise item.problem(f"there is nothing to show to the target: {names} {_is_or_are(inputs)} blank.")
        task = Task(id="", inputs=inputs)
        reference = self._reference(item, task)
        named = _plain(item, columns.id) if columns.id else _made_id(inputs, reference)
        task_id = _text(item, columns.id, named).strip()
        if not task_id:
            raise item.problem(f"the field {columns.id!r} is blank; give each task an id of its own, or none at all.")
        kind = _text(item, columns.kind, _plain(item, columns.kind)) if columns.kind else ""
        return evolve(task, id=task_id, kind=kind.strip(), reference=reference)

    def _reference(self, item: Item, task: Task) -> Any:
        """The reference as the scorer takes it: as it is, or with numbers as their text."""
        name = self.columns.reference
        value = _plain(item, name) if name else None
        if (isinstance(value, str) and not value.strip()) or value == []:
            value = None
        elif self.separator and isinstance(value, str):
            value = [part.strip() for part in value.split(self.separator) if part.strip()]
        problem = self._problem(value, task)
        if problem is None:
            return value
        text = _as_texts(value)
        if self._problem(text, task) is None:
            return text
        if value is None:
            what = f"the field {name!r} is blank" if name else "there is no reference"
            raise item.problem(f"there is nothing to score with: {what}.")
        raise item.problem(f"the scorer cannot use the field {name!r}: {problem}.")

    def _problem(self, reference: Any, task: Task) -> str | None:
        return None if self.check is None else problem_with(self.check, reference, task)

    def _part(self, item: Item) -> str:
        name = self.columns.split
        if not name:
            return ""
        word = _text(item, name, _plain(item, name)).strip()
        part = PART_OF.get(word.lower())
        if part is None:
            raise item.problem(
                f"the field {name!r} says where the task belongs, but there is no split {word[:40]!r}; write train, "
                f"selection (or val) or test, or give the field another name if it says something else."
            )
        return part


def problem_with(check: Check, reference: Any, task: Task) -> str | None:
    """What the scorer has against the reference; `None`: nothing."""
    try:
        check(reference, task)
    except ValueError as error:
        return str(error).rstrip(".")
    return None


def unique(rows: Sequence[Row], columns: Columns) -> None:
    """Raise `DataError`, with the places, when an id stands twice."""
    first: dict[str, Row] = {}
    problems = []
    for row in rows:
        known = first.setdefault(row.task.id, row)
        if known is row:
            continue
        what = f"has the id {row.task.id!r} of" if columns.id else "is the same task as"
        cure = "rename one of the two" if columns.id else "delete one of the two, or give both an id"
        problems.append(f"{row.item.where}: the row {what} the row at {known.item.where}; {cure}.")
    refuse(problems)


def refuse(problems: Sequence[str]) -> None:
    """Raise `DataError` with the first problems, unless there is none."""
    if problems:
        more = len(problems) - MOST_PROBLEMS_TOLD
        told = [*problems[:MOST_PROBLEMS_TOLD], *([f"and {more} more rows like these."] if more > 0 else [])]
        raise DataError("\n".join(told))


def input_key(task: Task) -> str:
    """Equal for two tasks with the same inputs, whatever their spacing."""
    return json.dumps(_squeezed(dict(task.inputs)), sort_keys=True, ensure_ascii=False)


def _made_id(inputs: Mapping[str, Any], reference: Any) -> str:
    """An id of the content, which stays the same when rows are moved or added."""
    content = json.dumps(_squeezed([dict(inputs), reference]), sort_keys=True, ensure_ascii=False)
    return f"task-{hashlib.sha256(content.encode('utf-8')).hexdigest()[:12]}"


def _squeezed(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {key: _squeezed(entry) for key, entry in value.items()}
    return [_squeezed(entry) for entry in value] if isinstance(value, list) else value


def _plain(item: Item, name: str) -> Any:
    """The field's value, which must be JSON without a NUL character."""
    value = value_of(item, name)
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise item.problem(
            f"the field {name!r} holds {_what(value)}, which cannot be shown as text; leave it out of env.fields."
        ) from None
    if "\\u0000" in written and "\0" in _all_text(value):
        raise item.problem(f"the field {name!r} holds a NUL character, which no text does; remove it.")
    return value


def _what(value: Any) -> str:
    if isinstance(value, float):
        return f"the number {value}"
    return f"a value of the type {type(value).__name__}"


def _all_text(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(str(key) + _all_text(entry) for key, entry in value.items())
    return "".join(map(_all_text, value)) if isinstance(value, list) else str(value)


def _text(item: Item, name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise item.problem(f"the field {name!r} must be text or a number, not {json.dumps(value)[:60]}.")


def _as_texts(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return [_as_texts(entry) for entry in value] if isinstance(value, list) else value


def _is_or_are(names: Mapping[str, Any]) -> str:
    return "is" if len(names) == 1 else "are"
