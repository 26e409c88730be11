"""The settings of the scorers, each as the mapping under `scorer` in a configuration names them."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import frozen
from skillopt_kernel.config.fields import above, at_least, between, option
from skillopt_lib_env.scoring import ScorerChoice


@frozen
class ExactSettings:
    """What of the spelling does not count."""

    ignore: Literal["squad", "case", "nothing"] = option(
        "case",
        "case: upper and lower case, blanks, a final full stop; squad: also ASCII punctuation and articles; nothing",
    )


@frozen
class ContainsSettings:
    """What must stand in the answer."""

    require: Literal["any", "all"] = option("any", "of several texts in the reference: any of them, or all")
    ignore_case: bool = option(True, "let upper and lower case stand for each other")
    whole_words: bool = option(False, "find a text only where no letter or digit adjoins it")


@frozen
class RegexSettings:
    """What pattern the answer must match; without one the reference is the pattern."""

    pattern: str = option("", "regular expression for every task; empty: each task's reference is one")
    whole: bool = option(False, "match the whole answer, not a part of it")
    ignore_case: bool = option(False, "let upper and lower case stand for each other")
    multiline: bool = option(False, "let ^ and $ match at line ends, too")
    dot_all: bool = option(False, "let . match line ends, too")
    time_limit: float = option(2.0, "seconds of computing for one answer", above(0))


@frozen
class NumericSettings:
    """How near a number must be. An answer within either tolerance is right."""

    relative_tolerance: float = option(0.0, "share of the reference by which an answer may differ", at_least(0))
    absolute_tolerance: float = option(0.0, "by how much an answer may differ, in the reference's unit", at_least(0))
    take: Literal["only", "first", "last"] = option("only", "which number of the answer counts; only: it must hold one")
    unit: Literal["optional", "required", "ignored"] = option(
        "optional", "whether an answer must have the reference's unit, or one that converts to it"
    )
    decimal_comma: bool = option(False, "read 1.234,5 as one thousand two hundred thirty-four and a half")


@frozen
class ChoiceSettings:
    """Which labels there are."""

    labels: str = option("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "the labels, one letter or digit each")
    several: bool = option(False, "a reference of several labels wants them all; else any of them is right")
    choices: str = option("choices", "name of the input that lists the choices, so that a choice's text is taken, too")


@frozen
class JsonSettings:
    """What of a JSON answer is compared."""

    fields: Mapping[str, ScorerChoice] = option(
        dict, "field (a.b.0 reaches inward) -> scorer of its value; none: all of the reference's, as JSON values"
    )
    schema: Mapping[str, Any] = option(
        dict, "JSON schema (draft 2020-12 where it names none) that the answer must follow"
    )
    schema_file: Path | None = option(None, "file with that schema")
    extra_fields: bool = option(True, "let the answer have fields that the reference has not")


@frozen
class AnlsSettings:
    """When an answer counts as right."""

    threshold: float = option(0.5, "a similarity below this counts as 0", between(0, 1))
    ignore_case: bool = option(True, "let upper and lower case stand for each other")
    right_from: float = option(1.0, "similarity from which an answer passes (hard)", above(0, 1))


@frozen
class MathSettings:
    """How mathematical answers are compared."""

    digits: int = option(6, "decimal places to which numbers must agree", at_least(0))
    strict: bool = option(True, "keep names of variables apart: x + 1 is not y + 1")
    time_limit: float = option(10.0, "seconds of computing for one comparison; what needs more is not equal", above(0))


@frozen
class JudgeSettings:
    """What the judge is told."""

    rubric: str = option("", "by what the answer is judged; empty: by agreement with the reference")
    rubric_file: Path | None = option(None, "file with the rubric")
    pass_at: float = option(0.8, "score from which an answer passes (hard)", above(0, 1))
    inputs: tuple[str, ...] = option((), "inputs of the task that the judge is shown; none named: all")
    longest_answer: int = option(40_000, "characters of the answer that the judge is shown", at_least(1))


@frozen
class PythonSettings:
    """Which function scores."""

    function: str = option("", "the function, as package.module:name")
    path: tuple[Path, ...] = option((), "folders where its module may lie")
    arguments: Mapping[str, Any] = option(dict, "further arguments, by name")
    time_limit: float = option(60.0, "seconds for one answer, without the time that a judge takes", above(0))

    def files(self) -> Mapping[str, tuple[Path, ...]]:
        """The source of the function, for a run's fingerprint: see `ScorerChoice`."""
        from skillopt_scorers.sources import sources_of

        return {"function": sources_of(self.function, self.path)} if self.function else {}


@frozen
class CommandSettings:
    """Which program scores."""

    command: tuple[str, ...] = option((), "the program and its arguments; run without a shell")
    time_limit: float = option(60.0, "seconds for one answer", above(0))
    output_limit: int = option(1_000_000, "bytes that it may print", at_least(1))
    folder: Path | None = option(None, "folder in which it runs; empty: the working directory")
    variables: tuple[str, ...] = option((), "environment variables with credentials that it is given all the same")

    def files(self) -> Mapping[str, tuple[Path, ...]]:
        """Those of program and arguments that are files, for a run's fingerprint: see `ScorerChoice`."""
        folder = self.folder or Path()
        found = tuple(folder / each for each in self.command if each and "\0" not in each and _is_file(folder / each))
        return {"command": found} if found else {}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument too long to be a path
        return False
