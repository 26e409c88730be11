"""Runs that are killed at one exact place, each in a process of its own, and what must not depend on it.

Processes are forked from a server that has imported everything already, so that one costs its run and little more.
"""

from __future__ import annotations

import fnmatch
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from skillopt_kernel import hookimpl, train
from skillopt_kernel.cli.main import main
from skillopt_kernel.hookspecs import STAGES
from skillopt_testkit.project import Project

COSTS = {
    "timing",
    "tokens",
    "wall_time_s",
    "total_wall_time_s",
    "token_summary",
    "config",
    "folder",
    "seconds",
}
"""What may differ: times and tokens, and the summary's own place."""

RACES = (
    "events.jsonl",
    "outcomes.jsonl",
    "calls.sqlite*",
    "*/predictions/*",
    "*/selection_eval/*",
    "fingerprint.json",
    "report.md",
    "*.lock*",
)
"""What bears times or the order of threads; a rejected candidate may have been asked a task more or less."""


@frozen
class Place:
    """An exact place in a run.

    what   a file of the run directory, as a pattern ("skills/skill_v0003.md"), or a stage ("reflect")
    when   "before" it is put into place or asked, or "after"
    nth    which time, from 1, counted in one process
    """

    what: str
    when: str = "before"
    nth: int = 1

    def __str__(self) -> str:
        number = f"-{self.nth}" if self.nth > 1 else ""
        return f"{self.when}-{self.what.replace('/', '.')}{number}"


@define(eq=False)
class Killer:
    """A hook plugin that ends its process as `kill -9` does, when it comes to the place (`None`: never).

    It sees every file that the kernel makes or puts into place, through the interpreter's own audit events, and
    stands around every stage. `files` has all that were put into place, in order.
    """

    root: Path
    place: Place | None = None
    files: list[str] = field(factory=list)
    _seen: int = 0
    _armed: bool = False

    def watch(self) -> None:
        """Begin; there is no end to it but the process's."""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._armed:  # the first thing that happens after the file was put into place
            self._die()
        target = _written(event, arguments)
        if target is None or not target.is_relative_to(self.root):
            return
        name = target.relative_to(self.root).as_posix()
        self.files.append(name)
        if self.place is not None and fnmatch.fnmatchcase(name, self.place.what):
            self._reached("before")
            self._armed = self._is_it("after")

    def around(self, stage: str) -> Generator[None, Any, Any]:
        mine = self.place is not None and self.place.what == stage
        if mine:
            self._reached("before")
        answer = yield
        if mine and self._is_it("after"):
            self._die()
        return answer

    def _reached(self, when: str) -> None:
        self._seen += 1
        if self._is_it(when):
            self._die()

    def _is_it(self, when: str) -> bool:
        return self.place is not None and (self.place.when, self.place.nth) == (when, self._seen)

    def _die(self) -> None:
        self.place, self._armed = None, False  # the call itself is audited too
        os.kill(os.getpid(), signal.SIGKILL)


def _written(event: str, arguments: tuple[Any, ...]) -> Path | None:
    """The file that an audit event says is renamed into place or made anew."""
    if event == "os.rename":
        return Path(os.fsdecode(arguments[1]))
    if event == "open" and arguments[1] is None and arguments[2] & os.O_EXCL:
        return Path(os.fsdecode(arguments[0]))
    return None


def _stage(name: str) -> Any:
    def stand(self: Killer) -> Generator[None, Any, Any]:
        return (yield from self.around(name))

    stand.__name__ = f"skillopt_{name}"
    return hookimpl(wrapper=True)(stand)


for _name in STAGES:
    setattr(Killer, f"skillopt_{_name}", _stage(_name))


def _run(
    config: Path, out: Path, overrides: Sequence[str], place: Place | None, told: Path, replay: Path | None
) -> None:
    killer = Killer(out, place)
    killer.watch()
    train(config, overrides, out=out, replay=replay, plugins=[("killer", killer)])
    told.write_text(json.dumps(killer.files), encoding="utf-8")


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "killed_runs", "skillopt_backend_simulated.backend", "skillopt_env_searchqa", "skillopt_commands.train",
        "skillopt_kernel.loop.api", "cattrs", "stevedore", "yaml", "filelock", "sqlite3", "stamina", "genai_prices",
        "openai.resources.chat.completions",
    ]
)  # fmt: skip


def _command(project: Project, arguments: Sequence[str], said: Path) -> None:
    os.chdir(project.folder)
    os.environ |= project.environment
    with said.open("a", encoding="utf-8") as stream:
        sys.stdout = sys.stderr = stream
        sys.exit(main(arguments))


def command(project: Project, *arguments: str) -> multiprocessing.process.BaseProcess:
    """`skillopt ARGUMENTS` in a process of its own, not yet started; what it says goes to `said.txt`."""
    process: multiprocessing.process.BaseProcess = _CONTEXT.Process(
        target=_command, args=(project, arguments, project.folder / "said.txt")
    )
    return process


def run_until(
    config: Path, out: Path, place: Place | None = None, overrides: Sequence[str] = (), replay: Path | None = None
) -> list[str]:
    """Train in a process of its own, which must die at `place`; without one it must come to its end.

    replay: the run whose ledger answers. Returns the files that a run that ended has put into place, in order.
    """
    told = out.with_name(f"{out.name}.files")
    process = _CONTEXT.Process(target=_run, args=(config, out, overrides, place, told, replay))
    process.start()
    process.join(120)
    if process.exitcode is None:
        process.kill()
        process.join()
    wanted = 0 if place is None else -signal.SIGKILL
    assert process.exitcode == wanted, f"{place}: the process ended with {process.exitcode}, not with {wanted}"
    files: list[str] = json.loads(told.read_text(encoding="utf-8")) if place is None else []
    return files


def decided(root: Path) -> dict[str, Any]:
    """Every file of a run directory that must not depend on how often the run was killed."""
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {name: _content(path) for name, path in found.items() if not any(map(_matcher(name), RACES))}


def _matcher(name: str) -> Any:
    return lambda pattern: fnmatch.fnmatchcase(name, pattern)


def _content(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return _without_costs(json.loads(text))
    if path.suffix == ".jsonl":
        return [_without_costs(json.loads(line)) for line in text.splitlines()]
    return text


def _without_costs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_costs(item) for name, item in value.items() if name not in COSTS}
    return [_without_costs(item) for item in value] if isinstance(value, list) else value


def differences(root: Path, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Each file that differs: (expected, found); empty when all are the same."""
    found = decided(root)
    names = sorted({*found, *expected})
    return {name: (expected.get(name), found.get(name)) for name in names if found.get(name) != expected.get(name)}
