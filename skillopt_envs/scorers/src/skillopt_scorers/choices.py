"""The scorer `choice`: the label of the right choice, in whatever spelling it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.records import Score
from skillopt_lib_env.labels import label_of, labels_of

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.settings import ChoiceSettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


class ChoiceScorer:
    """hard = 1 when the answer names a right label, and no other where one is asked for.

    soft is hard; with `several` it is what the sets of labels share (Jaccard: |both| / |either|). Where the task's
    inputs list the choices (`choices`: a list, or a mapping by label), a choice's text stands for its label.
    """

    def __init__(self, settings: ChoiceSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or ChoiceSettings()
        labels = self._settings.labels
        if not labels or not labels.isalnum() or len(set(labels.upper())) < len(labels):
            raise ConfigError(
                f"the scorer choice: `labels` must be letters or digits, each once, such as ABCD, not {labels!r:.60}"
            )

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that names no label or choice of the task."""
        self._right(reference, *self._choices(task))

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one label (or choice) or a list. Raises as `check`."""
        labels, choices = self._choices(task)
        right = self._right(reference, labels, choices)
        shown = " and ".join(map(quoted, sorted(right))) if self._settings.several else named(sorted(right))
        if not answer.strip():
            return Score(0.0, 0.0, f"Wrong: there is no answer; right: {shown}.")
        if self._settings.several:
            said = labels_of(answer, labels, choices)
        else:
            one = label_of(answer, labels, choices)
            said = frozenset({one} if one else ())
        if not said:
            return Score(0.0, 0.0, f"Wrong: {quoted(answer)} names no label that can be read; right: {shown}.")
        if said == right or (not self._settings.several and said <= right):
            return Score(1.0, 1.0, "Right.")
        soft = len(said & right) / len(said | right) if self._settings.several else 0.0
        return Score(0.0, soft, f"Wrong: chose {' and '.join(sorted(said))}; right: {shown}.")

    def _right(self, reference: Any, labels: str, choices: tuple[str, ...]) -> frozenset[str]:
        accepted = accepted_answers(reference)
        if not accepted:
            raise ValueError("the list of right labels is empty, so that no answer could be right")
        right: set[str] = set()
        for one in accepted:
            found = labels_of(one, labels, choices) if self._settings.several else None
            single = label_of(one, labels, choices)
            if not (found or single):
                raise ValueError(f"the reference {one!r:.200} names none of the labels {labels}")
            right |= found or {str(single)}
        return frozenset(right)

    def _choices(self, task: Task) -> tuple[str, tuple[str, ...]]:
        """The labels that the task has, and the choices' texts in their order."""
        given = task.inputs.get(self._settings.choices)
        if isinstance(given, Mapping):
            single = [str(label) for label in given if len(str(label)) == 1]
            if len(single) == len(given):
                return "".join(single), tuple(map(str, given.values()))
        if isinstance(given, list | tuple) and 0 < len(given) <= len(self._settings.labels):
            return self._settings.labels[: len(given)], tuple(map(str, given))
        return self._settings.labels, ()
