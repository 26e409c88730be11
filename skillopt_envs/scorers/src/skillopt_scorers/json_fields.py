"""The scorer `json`: an answer in JSON, by its fields, by a schema, or both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.records import Score
from skillopt_lib_env.scoring import looked_at

from skillopt_scorers.accepted import quoted
from skillopt_scorers.json_values import ABSENT, as_text, inside, read_json, same
from skillopt_scorers.schemas import Schema, schema_of
from skillopt_scorers.settings import JsonSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillopt_kernel.interfaces import DriverContext, Judge, Scorer
    from skillopt_kernel.records import Task

_MOST_REASONS = 5


class JsonScorer:
    """hard = every part is right, soft = the mean over the parts.

    The parts are the fields that `fields` names, each by its own scorer; without them those of the reference, each
    equal as a JSON value (a reference that is no object is one part); and where there is a schema, that the answer
    follows it. A reference is JSON, as such or as text; with a schema alone there need be none.
    """

    def __init__(self, settings: JsonSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or JsonSettings()
        self._schema: Schema | None = schema_of(self._settings.schema, self._settings.schema_file)
        if self._settings.fields and context is None:
            raise ConfigError("the scorer json needs a context that makes the scorers of its fields")
        self._fields: dict[str, Scorer] = {
            path: choice.make(context) for path, choice in self._settings.fields.items() if context is not None
        }

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that cannot be compared with."""
        self._references(self._wanted(reference), task)

    def shape_only(self, tasks: Sequence[Task]) -> str:
        """What it looks at, where no part of it depends on the outcome of the task; else ""."""
        wanted = [self._wanted(task.reference) for task in tasks]
        if not self._fields:
            if all(each is ABSENT for each in wanted):
                return "only whether the answer follows the same schema"
            alike = all(each is not ABSENT and same(each, wanted[0]) for each in wanted)
            return "for the same JSON value" if alike else ""
        seen = {path: looked_at(scorer, self._of_field(path, wanted, tasks)) for path, scorer in self._fields.items()}
        return "; ".join(f"in the field {path} {each}" for path, each in seen.items()) if all(seen.values()) else ""

    def _of_field(self, path: str, wanted: Sequence[Any], tasks: Sequence[Task]) -> list[Task]:
        """The tasks with what a field's own scorer compares with as their reference."""
        scorer = self._fields[path]
        references = [
            _reference_for(scorer, inside(each, path), path, task) for each, task in zip(wanted, tasks, strict=True)
        ]
        return [evolve(task, reference=each) for each, task in zip(references, tasks, strict=True)]

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare an answer in JSON. Raises as `check`, and what the scorers of the fields raise."""
        wanted = self._wanted(reference)
        references = self._references(wanted, task)
        if not answer.strip():
            return Score(0.0, 0.0, "Wrong: there is no answer.")
        given = read_json(answer)
        if given is ABSENT:
            return Score(0.0, 0.0, f"Wrong: {quoted(answer)} holds no JSON value that can be read, or more than one.")
        try:
            parts = self._parts(given, wanted, references, task, judge)
        except RecursionError:
            return Score(0.0, 0.0, "Wrong: the answer is nested too deep to be compared.")
        soft = sum(part.soft for _, part in parts) / len(parts)
        hard = float(all(part.hard >= 1 for _, part in parts))
        reasons = [f"{path}: {part.feedback}" if path else part.feedback for path, part in parts if part.hard < 1]
        more = len(reasons) - _MOST_REASONS
        lines = [*reasons[:_MOST_REASONS], *([f"{more} more are wrong."] if more > 0 else [])]
        feedback = "Right." if hard else f"{len(reasons)} of {len(parts)} parts are wrong. " + " ".join(lines)
        named = {path: part.soft for path, part in parts if path} if self._fields else {}
        return Score(hard, soft, feedback, named)

    def _references(self, wanted: Any, task: Task) -> dict[str, Any]:
        """What each field's scorer compares with. Raises `ValueError` where one cannot."""
        return {path: _reference_for(scorer, inside(wanted, path), path, task) for path, scorer in self._fields.items()}

    def _parts(
        self, given: Any, wanted: Any, references: Mapping[str, Any], task: Task, judge: Judge | None
    ) -> list[tuple[str, Score]]:
        parts = [
            (path, scorer.score(as_text(inside(given, path)), references[path], task, judge))
            for path, scorer in self._fields.items()
        ]
        if not self._fields and wanted is not ABSENT:
            whole = not isinstance(wanted, Mapping) or not wanted
            pairs = [("", given, wanted)] if whole else [(key, _field(given, key), wanted[key]) for key in wanted]
            parts += [(path, _compared(one, other)) for path, one, other in pairs]
        if not self._settings.extra_fields and isinstance(wanted, Mapping) and isinstance(given, Mapping):
            extra = [str(key) for key in given if key not in wanted]
            sentence = f"It has fields that were not asked for: {quoted(', '.join(extra))}."
            parts.append(("", Score(0.0, 0.0, sentence) if extra else Score(1.0, 1.0)))
        if self._schema is not None:
            problem = self._schema.problem(given)
            parts.append(
                ("", Score(0.0, 0.0, f"It does not follow the schema: {problem}.") if problem else Score(1.0, 1.0))
            )
        return parts

    def _wanted(self, reference: Any) -> Any:
        """The reference as a JSON value; `ABSENT` where a schema, or fields that need none, are all there is."""
        if reference is None and (self._schema is not None or self._fields):
            return ABSENT
        value = reference
        if isinstance(reference, str):
            value = read_json(reference)
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            value = ABSENT
        if value is ABSENT or reference is None:
            raise ValueError(f"a reference must be JSON, as such or as text, not {reference!r:.200}")
        return value


def _field(given: Any, key: str) -> Any:
    return given[key] if isinstance(given, Mapping) and key in given else ABSENT


def _compared(given: Any, wanted: Any) -> Score:
    if given is not ABSENT and same(given, wanted):
        return Score(1.0, 1.0)
    answered = "is lacking" if given is ABSENT else f"answered {quoted(json.dumps(given, ensure_ascii=False))}"
    return Score(0.0, 0.0, f"{answered}; accepted: {quoted(json.dumps(wanted, ensure_ascii=False))}.")


def _reference_for(scorer: Scorer, value: Any, path: str, task: Task) -> Any:
    """The reference of one field in a form that its scorer takes: as it is, or as text. Raises `ValueError`."""
    value = None if value is ABSENT else value
    check = getattr(scorer, "check", None)
    if check is None:
        return value
    try:
        check(value, task)
    except ValueError as error:
        if value is None or isinstance(value, str):
            raise ValueError(f"the reference's field {path!r}: {error}") from error
        text = as_text(value)
        try:
            check(text, task)
        except ValueError:
            raise ValueError(f"the reference's field {path!r}: {error}") from error
        return text
    return value
