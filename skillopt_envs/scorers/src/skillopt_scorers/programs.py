"""The scorer `command`: a program of one's own, which reads JSON and prints JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.store.patterns import redact_diagnostics
from skillopt_lib_env.children import ChildResult, plain_environment, run_child

from skillopt_scorers.given import FORM, score_of
from skillopt_scorers.settings import CommandSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Score, Task

_LONGEST_ERROR = 500


class CommandScorer:
    """What the program prints: a JSON value as the scorer `python` takes it from a function.

    On its standard input it gets {"answer", "reference", "task": {"id", "kind", "inputs", "files"}}, in UTF-8. It is
    started once an answer, without a shell, and killed with all that it began after `time_limit` seconds or
    `output_limit` bytes. A program that fails leaves the outcome without a score.
    """

    def __init__(self, settings: CommandSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or CommandSettings()
        if not self._settings.command or not self._settings.command[0]:
            raise ConfigError("the scorer command needs `command`, a list of the program and its arguments")
        self._who = f"the program {self._settings.command[0]}"
        self._refuse_absent()

    def shape_only(self, tasks: Sequence[Task]) -> str:
        """Nothing is known of what the program looks at."""
        return ""

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Run the program. Raises `EnvironmentFailure` when it fails or prints no score."""
        about = {"id": task.id, "kind": task.kind, "inputs": task.inputs, "files": task.files}
        sent = json.dumps({"answer": answer, "reference": reference, "task": about}, ensure_ascii=True, default=str)
        given = self._settings
        try:
            done = run_child(
                given.command, sent.encode(), seconds=given.time_limit, most=given.output_limit, folder=given.folder,
                environment=plain_environment(given.variables),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"{self._who} cannot be started: {error}") from error
        self._refuse_failure(done)
        try:
            # Some systems begin every output with a mark of the byte order.
            value = json.loads(done.output.decode("utf-8-sig"), parse_constant=_no_json)
        except (ValueError, RecursionError) as error:
            said = _told(done.output)
            what = f"printed {said!r}, which is not one JSON value ({error})" if said else "printed nothing"
            raise EnvironmentFailure(
                f"{self._who} {what}; it must print {FORM}, and nothing else on its standard output"
            ) from error
        return score_of(value, self._who)

    def _refuse_absent(self) -> None:
        """Raise `ConfigError` for a program that cannot be started, before anything is asked."""
        program = self._settings.command[0]
        # A path is looked for where the program runs, a bare name where the system looks for programs.
        place = ((self._settings.folder or Path()) / program).absolute() if Path(program).name != program else None
        if "\0" in program or shutil.which(place or program) is None:
            there = "is no program that can be run" if place is not None and place.exists() else "is not there"
            raise ConfigError(
                f"the scorer command: {program!r}, looked for {f'at {place}' if place else 'in the folders of PATH'}, "
                f"{there}. Name a program with its path and make it executable, or name what runs it, as in "
                f"[python3, score.py]."
            )

    def _refuse_failure(self, done: ChildResult) -> None:
        given, said = self._settings, _told(done.errors)
        if done.ended == "time":
            why = f"took more than {given.time_limit:g} seconds and was killed; see `time_limit`"
        elif done.ended == "output":
            why = f"printed more than {given.output_limit} bytes and was killed; see `output_limit`"
        elif done.code:
            why = f"ended with exit code {done.code}" if done.code > 0 else f"was ended by signal {-done.code}"
        else:
            return
        raise EnvironmentFailure(f"{self._who} {why}{f'; its last words: {said!r}' if said else ''}")


def _no_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _told(data: bytes) -> str:
    """The end of what a program wrote, without credentials."""
    text = redact_diagnostics(data.decode("utf-8", "replace").strip())
    return text if len(text) <= _LONGEST_ERROR else "..." + text[-_LONGEST_ERROR:]
