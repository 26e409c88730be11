"""The scorer `python`: a function of one's own, by object path."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.plugins.discovery import load_object
from skillopt_kernel.plugins.errors import PASSED_ON, ObjectNotFound
from skillopt_kernel.plugins.hook_loading import importable_from

from skillopt_scorers.given import score_of
from skillopt_scorers.settings import PythonSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Score, Task

OFFERED = ("answer", "reference", "task", "judge")
"""What a function may name as parameters, beside those of `arguments`."""


class PythonScorer:
    """What the function returns: true or false, a number from 0 to 1, a mapping, or a `Score`.

    It is called with those of `answer`, `reference`, `task` and `judge` that it names, and with `arguments`. It runs
    in this process, from several threads at once and without a time limit; for a limit use the scorer `command`.
    What it raises leaves the outcome without a score.
    """

    def __init__(self, settings: PythonSettings | None = None, context: DriverContext | None = None) -> None:
        settings = settings or PythonSettings()
        if not settings.function:
            raise ConfigError("the scorer python needs `function`, the path of yours as package.module:name")
        self._name = settings.function
        self._function = _imported(settings)
        self._arguments = dict(settings.arguments)
        self._offered = _parameters(self._function, settings)

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Call the function. Raises `EnvironmentFailure` when it raises or returns no score."""
        values = dict(zip(OFFERED, (answer, reference, task, judge), strict=True))
        given = {name: values[name] for name in self._offered}
        try:
            made = self._function(**given, **self._arguments)
        except PASSED_ON:
            raise
        except (Exception, SystemExit) as error:
            raise EnvironmentFailure(
                f"the function {self._name} raised {type(error).__name__}: {error} ({_place(error)})"
            ) from error
        return score_of(made, f"the function {self._name}")


def _imported(settings: PythonSettings) -> Callable[..., Any]:
    with importable_from(settings.path):
        try:
            found = load_object(settings.function)
        except ObjectNotFound as error:
            looked = ", ".join(map(str, settings.path))
            where = f"Looked in {looked} (path) and in what is installed." if looked else (
                "If its module lies beside the configuration file, add `path: [.]` to the scorer's settings."
            )  # fmt: skip
            raise ConfigError(f"the scorer python: {error} {where}") from error
    if not callable(found):
        raise ConfigError(f"the scorer python: {settings.function} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any], settings: PythonSettings) -> tuple[str, ...]:
    """Those of `OFFERED` that the function takes. Raises `ConfigError` when it cannot be called with what there is."""
    name, arguments = settings.function, settings.arguments
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the scorer python: nobody can tell what parameters {name} takes: {error}") from error
    kinds = [parameter.kind for parameter in parameters.values()]
    taken = {one for one, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        taken |= {*OFFERED, *arguments}
    clash, extra = sorted(set(arguments) & set(OFFERED)), sorted(set(arguments) - taken)
    if clash or extra:
        why = f"{clash[0]} is given by the scorer" if clash else f"{name} has no parameter {extra[0]!r}"
        raise ConfigError(f"the scorer python: remove {(clash or extra)[0]} from `arguments`: {why}")
    offered = tuple(one for one in OFFERED if one in taken)
    lacking = [
        one for one, each in parameters.items()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and (one not in (*offered, *arguments) or each.kind is each.POSITIONAL_ONLY)
    ]  # fmt: skip
    if lacking:
        raise ConfigError(
            f"the scorer python: {name} asks for {lacking[0]!r}, which nobody gives; by name it can have "
            f"{', '.join(OFFERED)} and what stands under `arguments`"
        )
    return offered


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "at an unknown place"
