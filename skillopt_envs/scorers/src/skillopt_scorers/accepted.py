"""The accepted answers of a reference, and how they are told to whoever improves the skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillopt_kernel.store.patterns import clipped

if TYPE_CHECKING:
    from skillopt_kernel.records import Task

LONGEST_QUOTE = 300
MOST_ACCEPTED_NAMED = 5


def accepted_answers(reference: Any) -> tuple[str, ...]:
    """The accepted answers as texts: `reference` is one text or a list of texts.

    Raises `ValueError` for anything else: a reference in another form is a defect of the data, not a wrong answer.
    """
    if isinstance(reference, str):
        return (reference,)
    if isinstance(reference, Sequence) and all(isinstance(one, str) for one in reference):
        return tuple(reference)
    cure = "; a rubric is for the scorer llm_judge" if isinstance(reference, Mapping) and "rubric" in reference else ""
    raise ValueError(f"a reference must be a text or a list of texts, not {reference!r:.200}{cure}")


def same_for_all(tasks: Sequence[Task]) -> str:
    """The accepted answers that every one of several tasks has, for a sentence; "" where they differ."""
    references = [task.reference for task in tasks]
    if not references or any(each != references[0] for each in references[1:]):
        return ""
    return named(accepted_answers(references[0]))


def quoted(answer: str) -> str:
    """The answer in quotation marks on one line, shortened in the middle of nothing but its end."""
    line = " ".join(answer.split())
    return f'"{line}"' if len(line) <= LONGEST_QUOTE else f'"{clipped(line, LONGEST_QUOTE)}..."'


def named(answers: Sequence[str]) -> str:
    """The accepted answers for a sentence: `"A" or "B"`."""
    if not answers:
        return "nothing (the task has no accepted answer)"
    more = len(answers) - MOST_ACCEPTED_NAMED
    return " or ".join(map(quoted, answers[:MOST_ACCEPTED_NAMED])) + (f" (and {more} more)" if more > 0 else "")
