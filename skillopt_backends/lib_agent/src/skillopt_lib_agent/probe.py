"""What a program can do: found, version, accepted flags. Asked once, before the first job."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from skillopt_kernel.errors import PermanentError
from skillopt_kernel.store.redaction import Redactor

from skillopt_lib_agent.environment import variables
from skillopt_lib_agent.failures import Program, quoted
from skillopt_lib_agent.finding import find_program
from skillopt_lib_agent.process import Finished, Processes
from skillopt_lib_agent.workspace import fresh_place

SECONDS = 60.0
"""How long a program may take to tell its version or its help."""

_VERSION = re.compile(r"\b(\d+(?:\.\d+)+)")
_FLAG = re.compile(r"(?<![\w-])--[a-zA-Z][\w-]*")


@frozen
class Capability:
    """What was found of a program: its file, its version ("" where it tells none), and the flags in its help."""

    path: Path
    version: str
    flags: frozenset[str]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers, for comparing; () where it tells none."""
        return tuple(int(part) for part in self.version.split(".") if part)


@define(eq=False)
class Probe:
    """Asks a program once what it can do. Used from many threads at once.

    command  name or path as the settings have it
    help     the arguments with which it prints the flags that are used, such as ("exec", "--help")
    needed   flags without which it cannot be used, oldest: the version from which on they are there
    given    further variables that it is given
    """

    _program: Program
    _command: str
    _processes: Processes
    _redactor: Redactor
    _help: Sequence[str] = ("--help",)
    _needed: Sequence[str] = ()
    _oldest: str = ""
    _given: Mapping[str, str] = field(factory=dict)
    _found: Capability | PermanentError | None = field(init=False, default=None)
    _lock: Any = field(init=False, factory=threading.Lock)

    def capability(self) -> Capability:
        """What the program can do. Raises `PermanentError`, with the line that helps, when it cannot be used."""
        with self._lock:
            if self._found is None:
                try:
                    self._found = self._ask()
                except PermanentError as error:
                    self._found = error
        if isinstance(self._found, PermanentError):
            raise PermanentError(str(self._found))
        return self._found

    def _ask(self) -> Capability:
        program, path = self._program, find_program(self._command)
        if path is None:
            raise PermanentError(
                f"the program {self._command!r} of {program.name} was not found. Install it (`{program.install}`), or "
                f"set {program.setting} to its path."
            )
        version = _VERSION.search(self._output(path, ["--version"]))
        flags = frozenset(_FLAG.findall(self._output(path, self._help)))
        found = Capability(path, version[1] if version else "", flags)
        missing = [flag for flag in self._needed if flag not in flags]
        if missing:
            newest = f"{self._oldest} or later" if self._oldest else "a later version"
            raise PermanentError(
                f"{program.name} at {path} (version {found.version or 'unknown'}) does not have {', '.join(missing)}. "
                f"Install {newest}: `{program.upgrade or program.install}`."
            )
        return found

    def _output(self, path: Path, arguments: Sequence[str]) -> str:
        """What it prints with these arguments; by itself, without the operator's settings."""
        with fresh_place() as place:
            try:
                done = self._processes.run(
                    [str(path), *arguments],
                    stdin="",
                    streams=place.streams,
                    folder=place.workspace,
                    variables=variables(place.home, place.scratch, given=self._given),
                    deadline=time.monotonic() + SECONDS,
                )
            except OSError as error:
                raise self._cannot(path, arguments, str(error)) from None
            out = done.stdout.read_bytes()[:1_000_000].decode("utf-8", "replace")
            if done.code != 0 or done.how != "by itself":
                raise self._cannot(path, arguments, _why(done, out))
            return f"{out}\n{done.stderr}"

    def _cannot(self, path: Path, arguments: Sequence[str], why: str) -> PermanentError:
        program = self._program
        return PermanentError(
            f"`{path} {' '.join(arguments)}` of {program.name} does not work{quoted(why, self._redactor)}. Install it "
            f"anew (`{program.install}`), or set {program.setting} to another path."
        )


def _why(done: Finished, out: str) -> str:
    if done.how != "by itself":
        return f"it did not end within {SECONDS:g} s"
    return done.stderr or out or f"exit code {done.code}"
