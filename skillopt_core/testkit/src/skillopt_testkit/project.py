"""A project in a folder of its own, and the command `skillopt` run on it in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

KINDS = {
    "colour": "Name a colour by its plain name.",
    "count": "Write a number as a word.",
    "place": "Leave the article out of a place's name.",
    "person": "Give a person's family name only.",
}
"""The kinds of the small world, each with the rule that its questions need."""

CONFIGURATION = """\
_base_: package:skillopt_kernel/default.yaml
train: {num_epochs: 2, train_size: 0, batch_size: 6, seed: 1}
gradient: {minibatch_size: 4, analyst_workers: 4}
optimizer: {lr_scheduler: constant, use_slow_update: false, use_meta_skill: false}
env: {name: searchqa, split_mode: split_dir, split_dir: data, skill_init: skill.md, workers: 4}
model: {optimizer_backend: simulated, target_backend: simulated, simulated_world: world.yaml}
"""


@frozen
class Finished:
    """How a command ended: its exit code, what it printed, and how long it took in seconds."""

    code: int
    out: str
    err: str
    seconds: float

    def ok(self) -> Finished:
        """Itself, if the command succeeded; else fails the test with what it printed."""
        assert self.code == 0, f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"
        return self

    def refused(self, *words: str) -> Finished:
        """Itself, if it ended as a user's error does: code 2, a sentence with these words, no traceback."""
        text = self.err + self.out
        assert self.code == 2, f"exit code {self.code}\n{text}"
        assert "Traceback" not in text, text
        for word in words:
            assert word in text, f"{word!r} is not in:\n{text}"
        return self


@frozen
class Project:
    """A folder with `config.yaml`, `data/`, `world.yaml` and `skill.md`, and what runs there."""

    folder: Path
    environment: Mapping[str, str] = field(factory=dict)

    @classmethod
    def make(cls, folder: Path, *, train: int = 12, selection: int = 12, test: int = 8) -> Project:
        """Write the small project: so many tasks in each split, of four kinds in turn."""
        project = cls(folder)
        number = 0
        for split, count in (("train", train), ("val", selection), ("test", test)):
            items = []
            for _ in range(count):
                kind = list(KINDS)[number % len(KINDS)]
                items.append(question(kind, number))
                number += 1
            project.write(f"data/{split}/items.json", json.dumps(items, indent=1))
        project.write("world.yaml", world())
        project.write("skill.md", "# Answering\n\n- Answer in few words.\n")
        project.write("config.yaml", CONFIGURATION)
        return project

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project, its folders included, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *arguments: str | Path, timeout: float = 120, env: Mapping[str, str] | None = None) -> Finished:
        """Run `skillopt ARGUMENTS` in the folder and wait for its end."""
        began = time.monotonic()
        done = subprocess.run(
            self._command(arguments),
            cwd=self.folder,
            env=self._variables(env),
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def kill_when(
        self,
        reached: Callable[[], bool],
        *arguments: str | Path,
        with_signal: int = signal.SIGKILL,
        timeout: float = 60,
    ) -> Finished:
        """Run `skillopt ARGUMENTS`, send it a signal as soon as `reached()` holds, and wait for its end.

        Fails the test when the command ends, or the time is over, before that.
        """
        began = time.monotonic()
        with subprocess.Popen(
            self._command(arguments),
            cwd=self.folder,
            env=self._variables(None),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
        ) as process:
            try:
                while not reached():
                    assert process.poll() is None, f"it ended by itself:\n{process.communicate()}"
                    assert time.monotonic() - began < timeout, "what the test waits for did not come"
                    time.sleep(0.005)
                process.send_signal(with_signal)
                out, err = process.communicate(timeout=timeout)
            finally:
                process.kill()
        return Finished(process.returncode, out, err, time.monotonic() - began)

    def json(self, name: str | Path) -> Any:
        """The content of a JSON file of the project."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def lines(self, name: str | Path) -> list[Any]:
        """The whole lines of a JSON Lines file; none when it is not there yet."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def _command(self, arguments: Sequence[str | Path]) -> list[str]:
        start = "from skillopt_kernel.cli.main import main; raise SystemExit(main())"
        return [sys.executable, "-P", "-c", start, *map(str, arguments)]

    def _variables(self, env: Mapping[str, str] | None) -> dict[str, str]:
        return {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", **self.environment, **(env or {})}


def question(kind: str, number: int) -> dict[str, Any]:
    """One item of the small data set, as the environment `searchqa` reads it."""
    answer = f"{kind} number {number}"
    return {
        "id": f"{kind}-{number:03d}",
        "question": f"[{kind}] Which {kind} stands at line {number}?",
        "context": f"[DOC] The list has {answer} at line {number}.",
        "answers": [answer],
        "task_type": kind,
    }


def world(optimizer: str = "{insight: 0.9, harmful: 0.1}") -> str:
    """The text of a world file in which each kind needs its rule. `optimizer`: its qualities, as YAML."""
    lines = ['data: ["data/*/items.json"]', "seed: 3", f"optimizer: {optimizer}", "kinds:"]
    for kind in KINDS:
        lines.append(f'  {kind}: {{marker: "[{kind}]", needs: [{kind}-rule], right_without: 0.1, right_with: 0.95}}')
    lines.append("rules:")
    lines += [f"  {kind}-rule: {{sentence: {json.dumps(sentence)}}}" for kind, sentence in KINDS.items()]
    lines.append('  long-rule: {sentence: "Explain each answer at length.", harms: {all: 0.5}}')
    return "\n".join(lines) + "\n"
