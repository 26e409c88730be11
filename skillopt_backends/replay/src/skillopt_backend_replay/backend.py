"""A recorded run in the place of every backend: it says what its models were, and its ledger answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from attrs import frozen
from skillopt_kernel.errors import ConfigError, RunDirectoryError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.ledger import CALLS
from skillopt_kernel.models.roles import ROLES

from skillopt_backend_replay.ledgers import RecordedCalls, ReplayLedger


def make_backend(settings: Any, context: DriverContext) -> Replay:
    """The replay of the run in the folder `context.common`; `ConfigError` where a configuration asks for it."""
    if not isinstance(context.common, Path):
        raise ConfigError(
            "'replay' is no backend to be named in a configuration. Name there the backends of the recorded run, and "
            "the run itself on the command line: skillopt train CONFIG --replay RUN."
        )
    return Replay(context.common)


@frozen(eq=False)
class RecordedModel:
    """Says which model it was. It is never asked: the ledger answers before."""

    model: str

    def complete(self, request: object) -> NoReturn:
        raise AssertionError("a replay asked a model")

    run = complete


class Replay:
    """Implements `Backend`, every role at once, with the calls of one run; and opens the ledger of its replay.

    named     role -> the backend and the model (`None`: the backend's own) that the configuration names
    """

    def __init__(self, run: Path) -> None:
        if not run.is_dir():
            raise RunDirectoryError(f"--replay: {run} is not a folder; name the directory of a run.")
        if not (run / CALLS).is_file():
            raise RunDirectoryError(
                f"--replay: {run} holds no {CALLS}: it is no run directory, or its run made no call yet. `skillopt "
                f"runs FOLDER` lists the runs in a folder."
            )
        self.run = run
        self.named: dict[str, tuple[str, str | None]] = {}
        self._recorded = RecordedCalls(run / CALLS)

    @property
    def capabilities(self) -> Mapping[str, frozenset[str]]:
        """What each role was in the run, a chat model or an agent; of a role that made no call both are true."""
        return {role: self._recorded.kinds(role) for role in ROLES}

    def backend(self, kind: str, name: str, settings: Any, context: DriverContext, where: str = "") -> Replay:
        """Itself, in place of the backend that the configuration names for `context.role`."""
        self.named[context.role] = (name, context.model)
        return self

    def ledger(self, path: Path) -> ReplayLedger:
        """The ledger of the replay at `path`. Raises `RunDirectoryError` when it is the recorded run's own."""
        if path.exists() and path.samefile(self.run / CALLS):
            raise RunDirectoryError(
                f"--replay: the run is to be replayed in its own directory {self.run}; choose another folder (--out)."
            )
        return ReplayLedger(path, self._recorded, self.named)

    def open_chat(self, role: str) -> RecordedModel:
        return RecordedModel(self.named[role][1] or self._recorded.model(role))

    open_agent = open_chat

    def endpoint(self, role: str) -> str:
        return f"replayed from {self.run}"

    def check(self, role: str) -> list[Finding]:
        return [("ok", f"its calls are answered from {self.run / CALLS}")]

    def close(self) -> None:
        self._recorded.close()
