"""Commands in processes of their own, to which something happens at one exact place of a run: in its second step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen
from killed_runs import command, decided, differences
from skillopt_testkit.project import Finished, Project

MODULE = """
import os, resource, shutil, signal, sys, time
from pathlib import Path


def around_reflect(run, step):
    if step.number == 2:
        happen(run, run.directory.root)
    return (yield)


def until(reached):
    while not reached():
        time.sleep(0.01)


def happen(run, root):
    {what}
"""
"""A plugin of the user's: what happens once the second step's rollout is committed and its first step is saved."""

START = "from skillopt_kernel.cli.main import main; raise SystemExit(main())"


def finished(project: Project, out: str) -> None:
    """Train to the end, in a process that has imported everything already."""
    process = command(project, "train", "mine.yaml", "--out", out, "-q")
    process.start()
    process.join(120)
    assert process.exitcode == 0, (project.folder / "said.txt").read_text(encoding="utf-8")


@frozen
class Begun:
    """A command under way."""

    process: subprocess.Popen[str]

    def wait(self) -> Finished:
        """Wait for its end."""
        try:
            said, told = self.process.communicate(timeout=120)
        finally:
            self.process.kill()
        return Finished(self.process.returncode, said or "", told or "", 0.0)

    def reach(self, path: Path) -> None:
        """Wait until it has made a file."""
        while not path.exists():
            assert self.process.poll() is None, self.wait()
            time.sleep(0.01)


@frozen
class Struck:
    """A small project and what an unbroken run of it decided. `happens` says what happens from now on."""

    project: Project
    unbroken: dict[str, Any]

    @classmethod
    def make(cls, folder: Path, **sections: dict[str, Any]) -> Struck:
        project = Project.make(folder, train=4, selection=4, test=4)
        settings = {
            "_base_": "config.yaml",
            "train": {"num_epochs": 3, "batch_size": 4},
            "hooks": {"path": ["."], "wrap": {"reflect": "happening:around_reflect"}},
            **sections,
        }
        project.write("mine.yaml", json.dumps(settings))
        struck = cls(project, {})
        struck.happens("pass")
        finished(project, "unbroken")
        return cls(project, decided(folder / "unbroken"))

    def happens(self, what: str) -> None:
        """What happens: Python statements in one line, with `run` and the run directory `root`."""
        self.project.write("happening.py", MODULE.format(what=what))

    def train(self, out: str = "run", *arguments: str, **more: Any) -> Finished:
        """`skillopt train` to its end; further arguments as of `start`."""
        return self.start("train", "mine.yaml", "--out", out, *arguments, **more).wait()

    def start(self, *arguments: str, prepare: Callable[[], None] | None = None, **streams: Any) -> Begun:
        """Begin `skillopt ARGUMENTS`. prepare: called in the child before anything else."""
        command = [sys.executable, "-P", "-c", START, *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        return Begun(
            subprocess.Popen(command, cwd=self.project.folder, env=environment, text=True, preexec_fn=prepare, **pipes)
        )

    def goes_on(self, out: str = "run") -> None:
        """The same command again ends with the files of an unbroken run, and has made no finished attempt again."""
        self.happens("pass")
        finished(self.project, out)
        folder = self.project.folder / out
        assert not differences(folder, self.unbroken)
        rows = self.project.lines(f"{out}/outcomes.jsonl")
        assert len({(row["skill_hash"], row["id"], row["sample"]) for row in rows}) == len(rows)
