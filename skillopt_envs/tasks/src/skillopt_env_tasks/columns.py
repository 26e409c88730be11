"""Which field of a row is what: as the configuration says, else by the names that people use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.plugins.errors import did_you_mean
from skillopt_lib_env.data_files import TABLES, Item

from skillopt_env_tasks.settings import FieldNames

IDS = ("id", "key", "uid")
KINDS = ("kind", "task_type")
SPLITS = ("split",)
INPUTS = (
    "instruction", "instructions", "prompt", "input", "inputs", "text", "context", "document", "passage", "question",
    "query", "problem", "task", "sentence", "choices", "options",
)  # fmt: skip
REFERENCES = (
    "reference", "references", "answer", "answers", "expected", "expected_output", "gold", "label", "target", "output",
    "solution",
)  # fmt: skip


@frozen
class Columns:
    """The fields of a data set by what they are; "" where there is none. `left_out`: those that nothing uses."""

    inputs: tuple[str, ...]
    reference: str
    id: str
    kind: str
    split: str
    left_out: tuple[str, ...]


def columns_of(items: Sequence[Item], named: FieldNames, shown: Sequence[str], where: str, *, scored: bool) -> Columns:
    """The columns of the data in `where`.

    shown   the fields that the prompt names; they are the inputs where the configuration names none
    scored  whether the scorer needs a reference

    A usual name counts in any case. Nothing else is guessed: a field that is none of them is left out, since it could
    tell the target what is right. Raises `DataError` for a name that there is not, and where no or more than one field
    could be meant.
    """
    there = list(dict.fromkeys(name for item in items for name in item.fields))
    for key in ("id", "reference", "kind", "split"):
        _check(getattr(named, key), f"env.fields.{key}", there, where)
    for name in named.inputs:
        _check(name, "env.fields.inputs", there, where)
    doubt = _doubt(items, there, where)
    reference = named.reference or _reference(there, named, shown, where, doubt, scored=scored)
    others = {
        key: getattr(named, key) or next(iter(_usual(usual, there)), "")
        for key, usual in (("id", IDS), ("kind", KINDS), ("split", SPLITS))
    }
    taken = {reference, *others.values(), *named.inputs, *shown}
    inputs = named.inputs or tuple(shown) or _inputs(there, {reference, *others.values()}, where, doubt)
    _refuse_reference(inputs, reference)
    taken |= set(inputs)
    heads = {name.partition(".")[0] for name in taken if name not in there}
    left_out = tuple(name for name in there if name not in taken | heads)
    return Columns(inputs, reference, **others, left_out=left_out)


def value_of(item: Item, name: str) -> Any:
    """What the row has in the field, or in the field of a field; `None` where it has nothing."""
    if name in item.fields:
        return item.fields[name]
    found: Any = item.fields
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _check(name: str, key: str, there: Sequence[str], where: str) -> None:
    if name and name not in there and name.partition(".")[0] not in there:
        raise DataError(
            f"{key} names {name!r}, but there is no such field in {where}.{did_you_mean(name, there)} "
            f"The fields are {', '.join(there)}."
        )


def _usual(usual: Sequence[str], there: Sequence[str]) -> list[str]:
    return [name for name in there if name.strip().lower().replace(" ", "_") in usual]


def _doubt(items: Sequence[Item], there: Sequence[str], where: str) -> str:
    """What may be wrong with the file as a whole where its fields are not understood, as a further sentence; or ""."""
    if where.lower().endswith(TABLES) and not _usual((*IDS, *KINDS, *SPLITS, *INPUTS, *REFERENCES), there):
        return (
            " The first row is taken as the names of the columns; where it is a task already, put a row such as "
            "question,answer above it."
        )
    if len(items) == 1:
        for name, value in items[0].fields.items():
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                return f" Are the tasks those in the list {name!r}? Then save that list alone, or name it data."
    return ""


def _reference(
    there: Sequence[str], named: FieldNames, shown: Sequence[str], where: str, doubt: str, *, scored: bool
) -> str:
    taken = {named.id, named.kind, named.split, *named.inputs, *shown}
    found = [name for name in _usual(REFERENCES, there) if name not in taken]
    if len(found) == 1 or (not found and not scored):
        return next(iter(found), "")
    what = f"{' and '.join(map(repr, found))} could each be" if found else "none has a usual name of"
    raise DataError(
        f"{where}: which field holds the right answers? Of its fields ({', '.join(there)}) {what} the reference. Say "
        f"which: `-o env.fields.reference=NAME`, or in YAML under env: fields: {{reference: NAME}}.{doubt}"
    )


def _inputs(there: Sequence[str], taken: set[str], where: str, doubt: str) -> tuple[str, ...]:
    free = [name for name in there if name not in taken]
    found = _usual(INPUTS, free) or (free if len(free) == 1 else [])
    if not found:
        raise DataError(
            f"{where}: which fields is the target to be shown? None of them ({', '.join(there)}) has a usual name. "
            f"Say which: `-o env.fields.inputs=[NAME, NAME]`, or in YAML under env: fields: {{inputs: [NAME, NAME]}}."
            f"{doubt}"
        )
    return tuple(found)


def _refuse_reference(inputs: Sequence[str], reference: str) -> None:
    if reference and reference in inputs:
        raise DataError(
            f"the field {reference!r} is the reference, which the target must never see; take it out of "
            f"env.fields.inputs and env.prompt, or name another one in env.fields.reference."
        )
