"""Which choice an answer names, by our rule and by that of earlier trainers."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_lib_env.labels import label_of

from skillopt_env_livemathematicianbench.questions import Choice


def chosen(answer: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that `answer` names by label or text, or `None`; see `skillopt_lib_env.labels.label_of`."""
    labels = "".join(choice.label for choice in choices)
    found = label_of(answer, labels, [choice.text for choice in choices])
    return next((choice for choice in choices if choice.label == found), None)


def earlier_label(answer: str, choices: Sequence[Choice]) -> str:
    """The label that earlier trainers took an answer for; a text that is no label is returned as they compared it.

    The answer without blanks around it, in upper case, without `. ) :` at its end: a label, or a choice's text in any
    case, or an answer whose first word, cleaned alike, is a label.
    """
    labels = {choice.label for choice in choices}
    cleaned = _cleaned(answer)
    if cleaned in labels:
        return cleaned
    for choice in choices:
        if choice.text.strip().lower() == answer.strip().lower():
            return choice.label
    first = _cleaned(next(iter(answer.split()), ""))
    return first if first in labels else cleaned


def _cleaned(text: str) -> str:
    return text.strip().upper().rstrip(".):").strip()
