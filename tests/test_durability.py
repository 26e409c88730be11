"""One run that is killed (-9) more than thirty times, at moments spread over all of it, and goes on each time."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from killed_runs import command, decided, differences
from served_world import Served, stage_of
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_kernel.store.files import last_lines
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Received, Reply
from small_worlds import two_rules_a_kind

MOMENTS = 30
"""How often the run is killed at least: at moments drawn by lot, and once in each stage that these would miss."""

WORKERS = 4
STAGES = {
    "analyst": "reflect", "merge": "aggregate", "ranking": "select", "rewrite": "update", "slow_update": "slow_update",
    "meta_skill": "meta_skill",
}  # fmt: skip
"""What the optimizer is asked for -> the stage of the run in which it is."""

EVERY = {*STAGES.values(), "rollout", "gate", "test"}
SETTINGS: dict[str, Any] = {
    "train": {"num_epochs": 3, "batch_size": 4, "accumulation": 2, "seed": 1},
    "gradient": {"minibatch_size": 2, "merge_batch_size": 2, "analyst_workers": WORKERS},
    "optimizer": {
        "skill_update_mode": "rewrite_from_suggestions", "learning_rate": 3, "min_learning_rate": 3,
        "use_slow_update": True, "slow_update_samples": 8, "use_meta_skill": True,
    },
    "env": {"workers": WORKERS},
}  # fmt: skip


def asked_text(messages: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps([[message["role"], message["content"]] for message in messages])


class Reaper(ChatServer):
    """A model behind HTTP that kills the process which asks it; until that is dead nobody is answered any more.

    process    what is to be killed, once it has asked as often as `left` says, or is in a stage that is not in `met`;
               `None`: nothing. It is known by its key: what one that is dead had sent is not counted
    """

    def __init__(self, served: Served, run: Path, draw: random.Random) -> None:
        super().__init__()
        self.served, self.run, self.draw = served, run, draw
        self.met, self.asked = Counter[str](), Counter[str]()
        self.process: BaseProcess | None = None
        self.left, self.key = 0, ""
        self.struck = False
        self.aiming = threading.Lock()

    def aim(self, key: str, process: BaseProcess | None = None, left: int = 0) -> None:
        """Answer the process that has this key, and kill it if it is given."""
        with self.aiming:
            self.key, self.process, self.left, self.struck = key, process, left, False

    def answer(self, received: Received) -> Reply:
        body = received.body
        with self.aiming:
            if self.struck or received.headers["authorization"] != f"Bearer {self.key}":
                return Reply(drop=True)
            self.asked[asked_text(body["messages"])] += 1
            self.left -= 1
            stage = self._stage(body) if self.process is not None else ""
            if self.process is not None and stage and (self.left <= 0 or not self.met[stage]):
                self.met[stage] += 1
                self.struck = True
                if self.draw.random() < 0.5:
                    kill(self.process)
                    return Reply(drop=True)
                threading.Thread(target=kill, args=(self.process, self.draw.random() / 50)).start()
        return self.served(body)

    def _stage(self, body: Mapping[str, Any]) -> str:
        """The stage of the run as its events tell it; the optimizer is asked in one that must come to be told."""
        wanted = STAGES.get(stage_of(body["messages"][0]["content"])) if body["model"] == "optimizer" else None
        while True:
            lines = last_lines(self.run / "events.jsonl", 100)
            told = [line for line in lines if line["event"] in ("stage_started", "stage_finished")]
            stage = str(told[-1]["stage"]) if told and told[-1]["event"] == "stage_started" else ""
            if wanted in (None, stage):
                return stage
            time.sleep(0.001)


def kill(process: BaseProcess, wait: float = 0.0) -> None:
    time.sleep(wait)  # somewhere in what the reply leads to, whatever the process is at then
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)


@frozen
class Killed:
    """The finished runs `unbroken` and `run`, and what was seen of the second.

    asked    how often the server was asked for each text; lost: which texts were in flight at each kill
    """

    project: Project
    reaper: Reaper
    lost: tuple[Counter[str], ...]


def kept(run: Path) -> Counter[str]:
    """The texts of the calls that the ledger has."""
    if not (run / CALLS).exists() or not (run / CALLS).stat().st_size:
        return Counter()
    ledger = Ledger(run / CALLS, read_only=True)
    texts = [asked_text(call["request"]["messages"]) for number in numbers(ledger) if (call := ledger.call(number))]
    ledger.close()
    return Counter(texts)


def numbers(ledger: Ledger) -> list[int]:
    return [call["number"] for call in ledger.calls()]


def ended(process: BaseProcess, code: int, said: Path) -> None:
    process.join(240)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == code, said.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("durability")
    project = Project.make(folder, train=8, selection=8, test=16)
    project.write("world.yaml", two_rules_a_kind("{insight: 1.0, harmful: 0.0, distractors: 0.2, over_budget: 0.0}"))
    draw, lost = random.Random(4), list[Counter[str]]()
    with Reaper(Served.of(project), folder / "run", draw) as reaper:
        model = {
            "optimizer_backend": "openai_compatible", "target_backend": "openai_compatible",
            "openai_compatible_base_url": reaper.url, "optimizer": "optimizer", "target": "target",
        }  # fmt: skip
        project.write("mine.yaml", json.dumps({"_base_": "config.yaml", **SETTINGS, "model": model}))

        def train(key: str, out: str, left: int | None = None) -> None:
            with_key = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": key})
            process = command(with_key, "train", "mine.yaml", "--out", out, "-q")
            reaper.aim(key, None if left is None else process, left or 0)
            process.start()
            ended(process, 0 if left is None else -signal.SIGKILL, folder / "said.txt")

        train("sk-unbroken", "unbroken")
        whole, before = reaper.asked.total(), Counter[str]()
        moments = sorted(draw.sample(range(1, whole * 9 // 10), MOMENTS))
        reaper.asked.clear()
        while moments or not set(reaper.met) >= EVERY:
            left = max(1, moments.pop(0) - kept(reaper.run).total()) if moments else whole
            train(f"sk-killed-{len(lost)}", "run", left)
            lost.append(reaper.asked - kept(reaper.run) - before)
            before += lost[-1]
        train("sk-last", "run")
    return Killed(project, reaper, tuple(lost))


def test_it_was_killed_thirty_times_and_in_every_stage(killed: Killed) -> None:
    assert len(killed.lost) >= MOMENTS
    assert set(killed.reaper.met) >= EVERY, killed.reaper.met


def test_it_ends_with_the_files_of_a_run_that_ran_through(killed: Killed) -> None:
    folder = killed.project.folder
    unbroken = decided(folder / "unbroken")
    assert not differences(folder / "run", unbroken)
    assert len(unbroken["history.json"]) == 3
    assert "accept_new_best" in {step["action"] for step in unbroken["history.json"]}


def test_no_finished_call_was_asked_again(killed: Killed) -> None:
    """What the server was asked is what the ledger has, each call once, and what was in flight at a kill."""
    ledger = Ledger(killed.reaper.run / CALLS, read_only=True)
    calls = [ledger.call(number) or {} for number in numbers(ledger)]
    ledger.close()
    keys = Counter((call["role"], call["scope"], call["ordinal"], call["digest"]) for call in calls)
    assert set(keys.values()) == {1}
    assert {call["status"] for call in calls} == {"ok"}
    assert max(map(Counter.total, killed.lost)) <= 2 * WORKERS, "of attempts and of analysts"
    lost = sum(killed.lost, Counter[str]())
    assert killed.reaper.asked == kept(killed.reaper.run) + lost


def test_no_finished_attempt_was_made_again(killed: Killed) -> None:
    rows = killed.project.lines("run/outcomes.jsonl")
    keys = Counter((row["skill_hash"], row["id"], row["sample"]) for row in rows)
    assert set(keys.values()) == {1}
    events = killed.project.lines("run/events.jsonl")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
