"""A wall around a program: with bubblewrap it sees its workspace, its home, itself and the system's own files only.

Whether the wall stands is measured, not assumed: a probe behind it looks for a file outside.
"""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field
from skillopt_kernel.errors import PermanentError

from skillopt_lib_agent.environment import variables
from skillopt_lib_agent.finding import find_program
from skillopt_lib_agent.process import Processes
from skillopt_lib_agent.workspace import Place, fresh_place

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries."""

SETTINGS = (
    "ssl", "pki", "ca-certificates", "ca-certificates.conf", "resolv.conf", "hosts", "nsswitch.conf", "passwd", "group",
    "localtime", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "protocols", "services", "gai.conf",
)  # fmt: skip
"""Of /etc, what names, certificates and libraries are found by. No file there holds a credential."""

SECONDS = 30.0
"""How long the measuring may take."""


@define(eq=False)
class Isolation:
    """Puts programs behind the wall, where there is one. Used from many threads at once.

    required  `execution.require_isolation`: without a wall nothing is run
    further   paths that a program may read beside its own; writable: folders that it may write, too
    """

    _processes: Processes
    _required: bool = False
    _further: Sequence[Path] = ()
    _builder: str = "bwrap"
    _writable: Sequence[Path] = ()
    _missing: str | None = field(init=False, default=None)
    _lock: Any = field(init=False, factory=threading.Lock)

    def missing(self) -> str:
        """Why there is no wall, as the end of a sentence; "" when there is one. Measured at the first request."""
        with self._lock:
            if self._missing is None:
                self._missing = self._measured()
            return self._missing

    def check(self) -> None:
        """Raises `PermanentError` when a wall is required and there is none."""
        if self._required and (why := self.missing()):
            raise PermanentError(
                f"execution.require_isolation is true, and {why}. Install bubblewrap (`apt install bubblewrap`), or "
                f"run where it works; with execution.require_isolation false agents can read this machine's files."
            )

    def around(self, command: Sequence[str], place: Place, program: Path) -> tuple[list[str], bool]:
        """The command behind the wall, and whether there is one."""
        self.check()
        if self.missing():
            return list(command), False
        return [*self._wall(place, [*own_paths(program), *self._further]), *command], True

    def _wall(self, place: Place, readable: Sequence[Path]) -> list[str]:
        builder = find_program(self._builder)
        assert builder is not None, "measured before"
        wall = [str(builder), "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        wall += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]
        for path in map(Path, SYSTEM):
            if path.is_symlink():
                wall += ["--symlink", str(path.readlink()), str(path)]
            elif path.exists():
                wall += ["--ro-bind", str(path), str(path)]
        for name in SETTINGS:
            # Links (such as resolv.conf into /run) are followed here: behind the wall what they lead to is missing.
            if (path := Path("/etc", name)).exists():
                wall += ["--ro-bind", str(path.resolve()), str(path)]
        wall += _shown(readable)
        for folder in (*self._writable, place.workspace, place.home, place.scratch):
            wall += ["--bind", str(folder), str(folder)]
        return [*wall, "--chdir", str(place.workspace), "--"]

    def _measured(self) -> str:
        if find_program(self._builder) is None:
            return f"the program `{self._builder}` of bubblewrap was not found"
        word = secrets.token_hex(8)
        with fresh_place() as outside, fresh_place() as place:
            hidden, seen = outside.workspace / "hidden", place.workspace / "seen"
            hidden.write_text(word, "utf-8")
            seen.write_text(word, "utf-8")
            look = f"cat {shlex.quote(str(seen))}; cat {shlex.quote(str(hidden))} 2>/dev/null; "
            home = Path.home()
            if len(home.parts) > 1 and not any(home.is_relative_to(system) for system in SYSTEM):
                look += f"ls -A {shlex.quote(str(home))} 2>/dev/null; "
            look += ":"
            try:
                done = self._processes.run(
                    [*self._wall(place, ()), "/bin/sh", "-c", look],
                    stdin="",
                    streams=place.streams,
                    folder=place.workspace,
                    variables=variables(place.home, place.scratch),
                    deadline=time.monotonic() + SECONDS,
                )
            except OSError as error:
                return f"bubblewrap cannot be started here ({error})"
            out = done.stdout.read_text("utf-8", "replace")
        if done.code != 0 or done.how != "by itself":
            return f"bubblewrap does not work here ({done.stderr.strip() or f'exit code {done.code}'})"
        return "" if out == word else "bubblewrap does not hide this machine's files"


def _shown(readable: Iterable[Path]) -> Iterator[str]:
    """What makes paths readable; links stay links, since programs look for their parts beside what they lead to."""
    there = list(map(Path, SYSTEM))
    for path in sorted({hop for each in readable for hop in _hops(each)}):
        if not path.exists() or any(path.is_relative_to(folder) for folder in there):
            continue
        if path.is_symlink():
            # The folder may be reached by a link itself, beside which what this one leads to is not shown.
            parent, real = path.parent, path.parent.resolve()
            yield from ("--symlink", str(path.readlink() if parent == real else real / path.readlink()), str(path))
        else:
            there.append(path)
            yield from ("--ro-bind", str(path), str(path))


def _hops(path: Path) -> Iterator[Path]:
    """A path, and what it leads to, link by link."""
    for _ in range(40):  # as many as systems follow
        yield path
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
        path = path.parent.resolve() / path.name


def own_paths(program: Path) -> list[Path]:
    """What belongs to a program, and so may be read by it: its file, its package, its interpreter."""
    file = program.resolve()
    paths = [program, file]
    modules = [parent for parent in file.parents if parent.name == "node_modules"]
    if modules:
        paths += [modules[-1], *_installation(find_program("node"))]
    elif file.parent.name not in ("bin", "") and file.parent != Path.home().resolve():
        paths.append(file.parent)
    return [*paths, *_interpreter(file)]


def _interpreter(file: Path) -> list[Path]:
    """The installation of what a script's first line names."""
    with file.open("rb") as opened:
        line = opened.readline(1000)
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if not words:
        return []
    if Path(words[0]).name == "env":
        return _installation(find_program(words[-1]))
    return _installation(Path(words[0]))


def _installation(file: Path | None) -> list[Path]:
    """Where a program is installed, and the file it links to: the folder above its `bin`, unless that is a home."""
    if file is None or not file.exists():
        return []
    home = Path.home().resolve()

    def place(each: Path) -> Path:
        above = each.parent.parent
        return above if each.parent.name == "bin" and above.resolve() not in (home, Path("/")) else each

    return [place(file), place(file.resolve())]
