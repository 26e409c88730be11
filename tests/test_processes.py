"""Whole runs with attempts in worker processes: the same decisions as on threads, and nothing left behind."""

import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.loop.preparing import prepare
from skillopt_kernel.plugins.errors import PluginNotFound
from skillopt_kernel.plugins.manifest import KINDS
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

RULE = "- Answer with the number alone."
KEY = "sk-very-secret-0123456789"
COSTS = {"timing", "tokens", "wall_time_s", "total_wall_time_s", "token_summary", "config", "executor", "drivers"}
COMMAND = [sys.executable, "-m", "skillopt_kernel.cli.main"]

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc")


def answer(body: Mapping[str, Any]) -> Reply:
    """The target is right once the rule is in its prompt, the optimizer proposes the rule, the judge is content."""
    system = body["messages"][0]["content"]
    if body["model"] == "target":
        return Reply("42" if RULE[2:] in system else "I do not know")
    if body["model"] == "judge":
        return Reply("Well done." if "42 /" in system else "The number is missing.")
    patch = {
        "reasoning": "",
        "edits": [{"op": "append", "content": RULE, "support_count": 3, "source_type": "failure"}],
    }
    return Reply(json.dumps({"batch_size": 3, "failure_summary": [], "success_patterns": [], **patch, "patch": patch}))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(answer) as server:
        yield server


class Trainee:
    """A project whose tasks are those of the environment `rehearsal`."""

    def __init__(self, folder: Path, server: ChatServer, attempt: tuple[str, ...] = ("note",)) -> None:
        self.project = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": KEY})
        for split, count in (("train", 4), ("val", 4), ("test", 2)):
            items = [
                {"id": f"{split}{n}", "question": "?", "answer": "42", "attempt": attempt, "score": ["judge"]}
                for n in range(count)
            ]
            self.project.write(f"data/{split}/items.json", json.dumps(items))
        model = {"backend": "openai_compatible", "openai_compatible_base_url": server.url}
        self.sections = {
            "_base_": "package:skillopt_kernel/default.yaml",
            "train": {"num_epochs": 2, "batch_size": 2},
            "optimizer": {"use_slow_update": False, "use_meta_skill": False},
            "model": {**model, "optimizer": "optimizer", "target": "target", "judge": "judge"},
            "env": {
                "name": "rehearsal",
                "split_mode": "split_dir",
                "split_dir": "data",
                "workers": 2,
                "marks": "marks",
            },
        }
        self.project.write("config.yaml", json.dumps(self.sections))

    def train(self, out: str, *overrides: str) -> Any:
        return self.project.run("train", "config.yaml", "--out", out, *(["-o", *overrides] if overrides else []))

    def decided(self, out: str) -> dict[str, Any]:
        """Skills, decisions, scores and what each attempt was and said; without times and costs."""
        folder = self.project.folder / out
        files = {name: without_costs(self.project.json(f"{out}/{name}")) for name in ("history.json", "summary.json")}
        talks = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*"))
            if path.name == "conversation.json" or path.parent.name == "skills"
        }
        rows = {str(path.relative_to(folder)): self.rows(path) for path in sorted(folder.rglob("results.jsonl"))}
        return {**files, **talks, **rows, "best": (folder / "best_skill.md").read_text()}

    def rows(self, path: Path) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in self.project.lines(path)]

    def workers(self, name: str = "*") -> set[int]:
        """The processes that have begun something."""
        marks = (self.project.folder / "marks").glob(name)
        return {int(line) for mark in marks for line in mark.read_text().split()}

    def start(self, *overrides: str) -> "subprocess.Popen[str]":
        command = [*COMMAND, "train", "config.yaml", "--out", "run", *(["-o", *overrides] if overrides else [])]
        return subprocess.Popen(
            command, cwd=self.project.folder, env={**os.environ, **self.project.environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def wait_for_workers(self, count: int) -> set[int]:
        until = time.monotonic() + 60
        while len(found := self.workers()) < count:
            assert time.monotonic() < until, "no worker began an attempt"
            time.sleep(0.01)
        return found


def without_costs(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_costs(item) for name, item in value.items() if name not in COSTS}
    return [without_costs(item) for item in value] if isinstance(value, list) else value


def alive(leaders: set[int]) -> set[int]:
    """Of these workers, those of whose group of processes anything runs, once they had time to end."""
    until, left = time.monotonic() + 10, set(leaders)
    while left and time.monotonic() < until:
        time.sleep(0.05)
        groups = set()
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, _, group = status.read_text().rpartition(")")[2].split()[:3]
                groups |= {int(group)} if state != "Z" else set()
        left &= groups
    return left


def test_a_run_decides_the_same_on_threads_and_in_processes(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    there.train("threads", "env.isolation=thread").ok()
    assert len(there.workers()) == 1
    there.train("processes").ok()
    assert len(there.workers()) == 3
    assert there.decided("processes") == there.decided("threads")
    history = there.project.json("processes/history.json")
    assert [step["action"] for step in history][:1] == ["accept_new_best"]
    started = [line["executor"] for line in there.project.lines("processes/events.jsonl") if "executor" in line]
    assert started == ["processes"]
    for name in ("threads", "processes"):
        calls = [line for line in there.project.lines(f"{name}/events.jsonl") if line["event"] == "model_called"]
        total = there.project.json(f"{name}/summary.json")["token_summary"]["_total"]
        assert total["calls"] == len(calls)
    assert there.project.json("threads/summary.json")["token_summary"].keys() == (
        there.project.json("processes/summary.json")["token_summary"].keys()
    )


@needs_proc
def test_a_run_survives_the_loss_of_its_workers(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    server.script = lambda body: Reply(answer(body).text, delay=0.05)
    killed: set[int] = set()

    def kill_one() -> None:
        for _ in range(3):
            victim = sorted(there.wait_for_workers(len(killed) + 1) - killed)[-1]
            time.sleep(0.1)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            killed.add(victim)

    hunter = threading.Thread(target=kill_one)
    hunter.start()
    there.train("run").ok()
    hunter.join()
    assert len(killed) == 3
    there.train("unbroken", "env.isolation=thread").ok()
    assert there.decided("run") == there.decided("unbroken")
    ended = [line for line in there.project.lines("run/events.jsonl") if line["event"] == "attempt_finished"]
    assert any(line.get("tries", 1) > 1 for line in ended)
    assert not alive(there.workers() | killed)


def test_an_attempt_whose_worker_always_crashes_is_missing_with_its_reason(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    items = there.project.json("data/train/items.json")
    items[0]["attempt"] = ["ask", "end"]
    there.project.write("data/train/items.json", json.dumps(items))
    there.train("run", "train.num_epochs=1").ok()
    rows = [row for row in there.project.lines("run/outcomes.jsonl") if row["id"] == "train0"]
    assert rows and all("hard" not in row for row in rows)
    assert "about to crash (worker lost, run 3 times)" in json.dumps(rows[0])
    assert len((there.project.folder / "marks" / "train0.attempt").read_text().split()) == 3 * len(rows)
    asked = [received for received in server.requests if received.body["messages"][0]["content"] == "Are you there?"]
    assert len(asked) == len(rows), "a call that was finished is not made again when its job is"


@needs_proc
def test_interrupted_once_it_finishes_what_is_in_flight_and_leaves_none(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    server.script = lambda body: Reply(answer(body).text, delay=0.1)
    with there.start() as process:
        there.wait_for_workers(2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (130, False), errors
    events = [line["event"] for line in there.project.lines("run/events.jsonl")]
    assert events.count("attempt_started") == events.count("attempt_finished")
    assert not alive(there.workers())


@needs_proc
@pytest.mark.parametrize("how", ["interrupted twice", "killed"])
def test_a_run_that_ends_at_once_leaves_no_process(tmp_path: Path, server: ChatServer, how: str) -> None:
    there = Trainee(tmp_path, server, attempt=("child", "hang"))
    with there.start() as process:
        workers = there.wait_for_workers(2)
        if how == "killed":
            process.kill()
        else:
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if how == "killed" else 130)
    assert len(workers) == 2
    assert not alive(workers)


@needs_proc
def test_attempts_that_hang_are_ended_and_scored_and_the_run_goes_on(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    items = there.project.json("data/val/items.json")
    items[0]["attempt"] = ["ask", "hang"]
    there.project.write("data/val/items.json", json.dumps(items))
    there.train("run", "train.num_epochs=1", "env.attempt_timeout=1").ok()
    rows = [row for row in there.project.lines("run/outcomes.jsonl") if row["id"] == "val0"]
    assert rows and {(row["hard"], row["attempt"]["ended"]) for row in rows} == {(0.0, "attempt_timeout")}
    assert not alive(there.workers())


def test_no_credential_reaches_a_worker_and_what_it_prints_harms_nothing(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server, attempt=("variables", "print"))
    there.train("run", "train.num_epochs=1").ok()
    told = [row["attempt"]["state"]["told"] for row in there.project.lines("run/outcomes.jsonl")]
    assert told and all("PATH" in each for each in told)
    assert not [each for each in told if KEY in each or "[redacted]" in each]  # it would stand there redacted


def test_an_environment_that_cannot_share_threads_is_refused_on_them(tmp_path: Path, server: ChatServer) -> None:
    there = Trainee(tmp_path, server)
    there.train("run", "execution.executor=threads").refused(
        "execution.executor", "executor: processes", "env.workers: 1"
    )
    assert not (tmp_path / "run").exists()
    there.train("run", "execution.executor=threads", "env.workers=1", "train.num_epochs=1").ok()


def test_without_the_package_the_error_names_it(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Trainee(tmp_path, server)
    there = [entry for group in KINDS.values() for entry in importlib.metadata.entry_points(group=group)]
    others = importlib.metadata.EntryPoints(entry for entry in there if entry.name != "processes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # another place to look in: what was listed before is listed anew
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: others)
    with pytest.raises(PluginNotFound, match="pip install skillopt-executor-processes"):
        prepare(load_config("config.yaml"))
    with pytest.raises(ConfigError, match="pip install skillopt-executor-processes"):
        load_config("config.yaml", ["execution.executor=processes"])
    unused = load_config("config.yaml", ["execution.worker_attempts=5"]).unused
    assert "the executor processes is not in use" in unused["execution.worker_attempts"]
