"""What people said of outputs: a training signal with a scope, and never a score.

A comment is about one output, made with one version of the skill. It is shown to those who improve the skill, for a
training task, beside an attempt with that version. It never reaches the target or the judge, and changes no score: a
candidate is judged by what it does itself, whatever was said of an earlier one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.plugins.errors import did_you_mean
from skillopt_lib_env.data_files import Item, read_items

from skillopt_env_tasks.rows import refuse

FIELDS = ("task", "version", "rating", "comment")
_VERSION = re.compile(r"[0-9a-f]{8,16}")


@frozen
class Comment:
    """One comment: on the output for `task` of the skill whose hash begins with `version`."""

    task: str
    version: str
    rating: str
    text: str
    where: str

    def is_of(self, version: str) -> bool:
        """Whether it is about an output of the skill with this hash."""
        return version.startswith(self.version)


def read_feedback(path: Path) -> tuple[Comment, ...]:
    """The comments of a file. Raises one `DataError` for all rows that cannot be used."""
    if path.is_dir():
        raise DataError(f"env.feedback: {path} is a folder; name the file that holds the comments.")
    comments, problems = [], []
    for item in read_items(path):
        try:
            comments.append(_comment(item))
        except DataError as error:
            problems.append(str(error))
    refuse(problems)
    return tuple(comments)


def content_hash(comments: Iterable[Comment]) -> str:
    """16 hex digits over all that can change what analysts are shown."""
    lines = "\n".join(repr((one.task, one.version, one.rating, one.text)) for one in comments)
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()[:16]


def told(comments: Sequence[Comment], task: str, version: str, scope: str) -> str:
    """What analysts are shown for an attempt at `task` with the skill `version`; "" where nothing is about it."""
    lines = []
    for comment in sorted((one for one in comments if one.task == task), key=lambda one: not one.is_of(version)):
        same = comment.is_of(version)
        if not same and scope == "version":
            continue
        whose = "of this version of the skill" if same else f"of another version of the skill ({comment.version})"
        rating = f" rated {comment.rating}" if comment.rating else ""
        lines.append(f"- On an output {whose}{':' if not rating else ','}{rating}{_text(comment, rating)}")
    if not lines:
        return ""
    return (
        "What people said of outputs for this task. Each is about its own output, which may differ from the one above; "
        "what is said of another version may hold no more.\n" + "\n".join(lines)
    )


def warnings_of(comments: Sequence[Comment], train: set[str], held_out: set[str], start: str) -> list[str]:
    """Which comments are not used, in sentences.

    start  the version that training starts from, where comments are used with their version only; "" else
    """
    apart = sum(one.task in held_out for one in comments)
    unknown = [one for one in comments if one.task not in train | held_out]
    sentences = []
    if apart:
        sentences.append(f"env.feedback: {apart} of {len(comments)} comments are on selection or test tasks; not used.")
    if unknown:
        first = unknown[0]
        sentences.append(
            f"env.feedback: {len(unknown)} of {len(comments)} comments are on tasks that the data does not have, "
            f"such as {first.task!r} ({first.where}); not used."
        )
    others = [one for one in comments if one.task in train and start and not one.is_of(start)]
    if others:
        first = others[0]
        sentences.append(
            f"env.feedback: {len(others)} of {len(comments)} comments are about another version of the skill than the "
            f"one that training starts from ({start}), such as {first.version} ({first.where}); they are shown only "
            f"once training comes to that version. Start from that version, or show them from the first step on: "
            f"env.feedback_scope: task."
        )
    return sentences


def _comment(item: Item) -> Comment:
    unknown = [name for name in item.fields if name not in FIELDS]
    if unknown:
        raise item.problem(
            f"the field {unknown[0]!r} is none of {', '.join(FIELDS)}.{did_you_mean(unknown[0], list(FIELDS))}"
        )
    version = item.required_text("version").strip().lower()
    if not _VERSION.fullmatch(version):
        raise item.problem(
            f"the version is {version[:40]!r}, but it is the hash of the skill that made the output, 8 to 16 hex "
            f"digits, as report.md and summary.json of a run name it."
        )
    rating, text = item.text("rating", "").strip(), item.text("comment", "").strip()
    if rating.lower() in ("nan", "inf", "-inf"):
        raise item.problem(f"the rating is {rating}, which is none; write a number, or a word such as poor.")
    if not rating and not text:
        raise item.problem("the row has neither a rating nor a comment; give one of them.")
    return Comment(item.required_text("task").strip(), version, rating, " ".join(text.split()), item.where)


def _text(comment: Comment, rating: str) -> str:
    if not comment.text:
        return "."
    return f": {comment.text}" if rating else f" {comment.text}"
