"""One program as a backend uses it: probed once, put behind the wall, run in fresh folders, ended when the run ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from attrs import define, field
from skillopt_kernel.errors import CallTimeout, PassingError, PermanentError
from skillopt_kernel.interfaces import Finding
from skillopt_kernel.models.requests import AgentJob
from skillopt_kernel.store.redaction import Redactor

from skillopt_lib_agent.environment import variables
from skillopt_lib_agent.failures import Program, killed, quoted
from skillopt_lib_agent.isolation import Isolation
from skillopt_lib_agent.probe import Capability, Probe
from skillopt_lib_agent.process import MOST_OUTPUT, Finished, Processes
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.sharing import SharedFiles
from skillopt_lib_agent.workspace import Place


@define(eq=False)
class Launcher:
    """Made by a backend's factory from what is told of the program. Used from many threads at once.

    program   what messages say of it; settings: those that all have
    command   name or path of the program as set
    help      arguments that print the flags; needed: flags without which it is of no use, oldest: their first version
    require_isolation   `execution.require_isolation`
    credentials  secrets that the program is given, which no message may show
    writable     folders of the operator's that it may write behind the wall, such as where it is signed in
    given     variables that it is always given, when it is probed as well
    readable  what it may read behind a wall, beside its own files and what the settings name
    """

    program: Program
    settings: ProgramSettings
    _command: str
    _help: Sequence[str] = ("--help",)
    _needed: Sequence[str] = ()
    _oldest: str = ""
    _require_isolation: bool = False
    _credentials: Iterable[str] = ()
    _writable: Sequence[Path] = ()
    _given: Mapping[str, str] = field(factory=dict)
    _readable: Sequence[Path] = ()
    redactor: Redactor = field(init=False)
    isolation: Isolation = field(init=False)
    _processes: Processes = field(init=False, factory=Processes)
    _shared: SharedFiles = field(init=False, factory=SharedFiles)
    _probe: Probe = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.redactor = Redactor(self._credentials)
        readable = (*self._readable, *self.settings.readable_paths)
        self.isolation = Isolation(self._processes, self._require_isolation, readable, writable=self._writable)
        self._probe = Probe(
            self.program,
            self._command,
            self._processes,
            self.redactor,
            self._help,
            self._needed,
            self._oldest,
            self._given,
        )

    def capability(self) -> Capability:
        """What the program can do. Raises `PermanentError`, with the line that helps."""
        return self._probe.capability()

    def deadline(self, wanted: float | None) -> float:
        """When a job's time is over: at its own deadline, or after the setting's time, whichever is first."""
        latest = time.monotonic() + self.settings.timeout_seconds
        return latest if wanted is None else min(latest, wanted)

    def laid(self, place: Place, job: AgentJob) -> AbstractContextManager[None]:
        """A job's files in its workspace: its own if it edits, else linked to copies that all jobs read."""
        return self._shared.laid(place.workspace, job.files, edits=job.edits)

    def run(
        self,
        place: Place,
        arguments: Sequence[str],
        *,
        stdin: str,
        deadline: float,
        passed: Iterable[str] = (),
        given: Mapping[str, str] | None = None,
        most_output: int = MOST_OUTPUT,
        handed: Mapping[str, str] | None = None,
    ) -> tuple[Finished, bool]:
        """Run the program in a place, and tell how it ended by itself, and whether it was isolated.

        passed  names of the operator's variables that it is given beside the usual ones; given: further variables
        handed  variable -> secret that the program reads from a pipe, whose number the variable has
        Raises `PermanentError` when it cannot be run at all, `CallTimeout` after the deadline, and `PassingError` when
        a signal or its own flood of output ended it. What an exit code means, its driver knows.
        """
        program = self.program
        capability = self.capability()
        passed = (*passed, *self.settings.pass_variables)
        command, isolated = self.isolation.around([str(capability.path), *arguments], place, capability.path)
        if time.monotonic() >= deadline:
            raise CallTimeout("the time of the job was over before it was begun")
        try:
            done = self._processes.run(
                command,
                stdin=stdin,
                streams=place.streams,
                folder=place.workspace,
                variables=variables(place.home, place.scratch, passed=passed, given={**self._given, **(given or {})}),
                deadline=deadline,
                most_output=most_output,
                handed=handed,
                guarded=not isolated,
            )
        except OSError as error:
            raise PermanentError(
                f"{program.name} at {capability.path} cannot be started ({error}). Install it anew "
                f"(`{program.install}`), or set {program.setting} to another path."
            ) from None
        self._check(done, most_output)
        return done, isolated

    def _check(self, done: Finished, most_output: int) -> None:
        name = self.program.name
        if done.how == "deadline":
            said = quoted(done.stderr, self.redactor)
            raise CallTimeout(f"{name} had no answer after {done.seconds:.0f} s and was ended{said}.")
        if done.how == "cancelled":
            raise PassingError(f"{name} was ended, since the run is over.")
        if done.how == "output":
            error = PassingError(f"{name} printed more than {most_output // 1_000_000} MB and was ended.")
            error.charged = True
            raise error
        # A wall or a shell that runs it tells of its signal by an exit code above 128.
        code = 128 - done.code if 128 < done.code < 128 + 65 else done.code
        if code < 0:
            raise killed(self.program, code, self.redactor, done.stderr)

    def check(self) -> list[Finding]:
        """What `skillopt doctor` says: whether the program is there, which version, and whether it can be isolated."""
        try:
            found = self.capability()
        except PermanentError as error:
            return [("error", str(error))]
        findings: list[Finding] = [
            ("ok", f"{self.program.name} {found.version or 'of unknown version'} at {found.path}")
        ]
        missing = self.isolation.missing()
        if not missing:
            findings.append(("ok", f"{self.program.name} runs isolated: it sees its workspace and its home only"))
        elif self._require_isolation:
            try:
                self.isolation.check()
            except PermanentError as error:
                findings.append(("error", str(error)))
        else:
            findings.append(
                ("warning", f"{self.program.name} runs without isolation, and can read this machine's files: {missing}")
            )
        return findings

    def close(self) -> None:
        """End every program that runs."""
        self._processes.close()
        self._shared.close()


def copied(path: Path, folder: Path, name: str) -> bool:
    """Copy a file that a program signs in with into its private configuration, readable by its owner only."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = folder / name
    target.touch(mode=0o600)
    target.write_bytes(content)
    return True
