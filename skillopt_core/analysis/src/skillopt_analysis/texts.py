"""Texts of tasks made comparable: what a task shows, what it counts as right, and which options it offers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.records import Task

OPTIONS = ("choices", "options")
"""Names under which `Task.inputs` may hold the options of a multiple-choice task."""

_PUNCTUATION = re.compile(r"""(?<!\d)[.,;:!?"'“”‘’…]|[.,;:!?"'“”‘’…](?!\d)""")
_TEXTS = ("text", "content", "value")
_RIGHT = ("label", "correct_label", "text", "correct_text", "answer", "correct_choice")


@frozen
class Option:
    """One option of a multiple-choice task. `label` is its letter, given or by its place."""

    label: str
    text: str
    right: bool


def normalised(text: str) -> str:
    """In lower case, without the punctuation of sentences, with single spaces: such texts say the same.

    Signs that can mean something stay (`+ - < > = $ \\`), and so do points and commas between digits.
    """
    return " ".join(_PUNCTUATION.sub(" ", unicodedata.normalize("NFKC", text).casefold()).split())


def _label(text: str) -> str:
    return text.strip(" ().:[]").casefold()


def options_of(task: Task) -> tuple[Option, ...]:
    """The options of a multiple-choice task; none for another task.

    `inputs["choices"]` or `inputs["options"]`: a list of texts, a list of `{label, text}`, or a mapping label -> text.
    The reference names what is right by label or by text: one, a list of them, or a mapping with `label` or `text`.
    A label is looked for first; a text must be an option's own.
    """
    given = next((task.inputs[name] for name in OPTIONS if task.inputs.get(name)), ())
    listed = [(label, text) for label, text in _listed(given) if text.strip()]
    references = references_of(task)
    texts = {normalised(text) for text in references}
    by_label = {_label(text) for text in references} & {_label(label) for label, _ in listed}
    return tuple(
        Option(label, text, _label(label) in by_label if by_label else normalised(text) in texts)
        for label, text in listed
    )


def _listed(given: Any) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        yield from ((str(label), str(text)) for label, text in given.items())
    elif isinstance(given, list | tuple):
        for place, each in enumerate(given):
            label = chr(ord("A") + place) if place < 26 else str(place + 1)
            if isinstance(each, Mapping):
                text = next((each[name] for name in _TEXTS if name in each), "")
                yield str(each.get("label") or label), str(text)
            else:
                yield label, str(each)


def references_of(task: Task) -> list[str]:
    """Every text that the task's reference names as right; numbers as text. None for a reference of another form."""

    def read(value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            yield from next((list(read(value[name])) for name in _RIGHT if name in value), [])
        elif isinstance(value, list | tuple):
            for each in value:
                yield from read(each)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield str(value)

    return [text for text in read(task.reference) if text.strip()]


def shown_text(task: Task) -> str:
    """All that the task shows, normalised; the order of its options does not count."""

    def read(value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            for name in sorted(value, key=str):
                yield from read(value[name])
        elif isinstance(value, list | tuple):
            for each in value:
                yield from read(each)
        elif value is not None:
            yield normalised(str(value))

    options = sorted(normalised(option.text) for option in options_of(task))
    rest = {name: value for name, value in task.inputs.items() if name not in OPTIONS or not options}
    return "\n".join(text for text in (*read(rest), *options) if text)


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return path  # what cannot be read is told apart by its name


def shown_files(task: Task) -> tuple[str, ...]:
    """The contents of the task's files, as digests."""
    return tuple(sorted(_digest(path) for path in task.files.values()))
