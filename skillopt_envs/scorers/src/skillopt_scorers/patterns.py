"""The scorer `regex`: a regular expression that the answer must match, bounded in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.records import Score

from skillopt_scorers.accepted import accepted_answers, named, quoted, same_for_all
from skillopt_scorers.settings import RegexSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


class RegexScorer:
    """hard = soft = whether the answer matches: the configured pattern, or one of those that the reference gives.

    Patterns are written as for Python's `re`. Matching is given up after `time_limit` seconds of computing; the
    outcome then has no score, since the pattern is at fault and not the answer.
    """

    def __init__(self, settings: RegexSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or RegexSettings()
        if self._settings.pattern:
            try:
                self._compiled(self._settings.pattern)
            except ValueError as error:
                raise ConfigError(f"the scorer regex: {error}") from error

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is no pattern, unless the configuration gives one."""
        if not self._settings.pattern:
            self._patterns(reference)

    def shape_only(self, tasks: Sequence[Task]) -> str:
        """The pattern that every answer must match, where that is the same for all tasks; else ""."""
        wanted = quoted(self._settings.pattern) if self._settings.pattern else same_for_all(tasks)
        return f"whether the answer matches the same pattern, {wanted}" if wanted else ""

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Match the answer. Raises as `check`, and `EnvironmentFailure` when matching takes too long."""
        patterns = [self._settings.pattern] if self._settings.pattern else self._patterns(reference)
        if any(self._matches(pattern, answer) for pattern in patterns):
            return Score(1.0, 1.0, "Right.")
        answered = f"answered {quoted(answer)}" if answer.strip() else "there is no answer"
        return Score(0.0, 0.0, f"Wrong: {answered}; it does not match {named(patterns)}.")

    def _patterns(self, reference: Any) -> list[str]:
        patterns = list(accepted_answers(reference))
        if not patterns or not all(patterns):
            raise ValueError("there is no pattern to match: give one as the reference, or one for all (pattern)")
        for pattern in patterns:
            self._compiled(pattern)
        return patterns

    def _compiled(self, pattern: str) -> Any:
        import regex

        given = self._settings
        names = {"IGNORECASE": given.ignore_case, "MULTILINE": given.multiline, "DOTALL": given.dot_all}
        flags = regex.V0
        for name, wanted in names.items():
            flags |= getattr(regex, name) if wanted else 0
        try:
            return regex.compile(pattern, flags)
        except (regex.error, OverflowError, RecursionError, MemoryError) as error:
            raise ValueError(f"{pattern!r:.200} is no regular expression: {error}") from error

    def _matches(self, pattern: str, answer: str) -> bool:
        compiled = self._compiled(pattern)
        match = compiled.fullmatch if self._settings.whole else compiled.search
        try:
            return match(answer, timeout=self._settings.time_limit) is not None
        except (MemoryError, RecursionError) as error:
            raise EnvironmentFailure(
                f"matching {pattern!r:.200} needs too much memory; write the pattern so that it does not call itself "
                f"without end"
            ) from error
        except TimeoutError as error:
            raise EnvironmentFailure(
                f"matching {pattern!r:.200} took more than {self._settings.time_limit:g} seconds on an answer of "
                f"{len(answer)} characters; write the pattern so that no part of it repeats a repetition"
            ) from error
