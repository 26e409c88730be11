"""One run through an endpoint that fails in every way there is, beside the same run through one that does not."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from http_world import answer, configure, make_project
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

FAULTS = (
    ("rate limit", 0.10, Reply("slow down", status=429, headers={"retry-after-ms": "20"})),
    ("server error", 0.05, Reply("an internal error", status=500)),
    ("dropped", 0.05, Reply(drop=True)),
)
MALFORMED = 0.10
EVERYTHING = {
    "train": {"num_epochs": 3, "batch_size": 8, "accumulation": 1},
    "gradient": {"minibatch_size": 3, "analyst_workers": 4},
    "evaluation": {"eval_test": True},
    "env": {"workers": 8},
}


class Faulty:
    """The world with faults, each drawn from the request and from how often it came: the same in every run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def __call__(self, body: Mapping[str, Any]) -> Reply | str:
        text = json.dumps(body, sort_keys=True)
        with self.lock:
            self.seen[text] += 1
            draw, second = self._draws(f"{self.seen[text]}|{text}")
            for name, share, reply in FAULTS:
                draw -= share
                if draw < 0:
                    self.faults[name] += 1
                    return reply
            if body["model"] == "optimizer" and second < MALFORMED:
                self.faults["malformed"] += 1
                return "Sorry, here are my thoughts: it could be clearer."
        return answer(body)

    @staticmethod
    def _draws(text: str) -> tuple[float, float]:
        digest = hashlib.sha256(text.encode()).digest()
        return digest[0] / 256 + digest[1] / 65536, digest[2] / 256


def trained(project: Project, script: Any, out: str) -> list[Any]:
    with ChatServer(script) as server:
        done = project.run("train", configure(project, server, **EVERYTHING), "--out", out).ok()
    assert "retry_scheduled" not in done.out + done.err, (
        "a try is told by its event, and by no library in words of its own"
    )
    history: list[Any] = project.json(f"{out}/history.json")
    return history


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Faulty]:
    """The finished runs `whole` and `faulty`, and what the second had to bear."""
    project, faults = make_project(tmp_path_factory.mktemp("faults"), train=16, selection=12, test=4), Faulty()
    trained(project, answer, "whole")
    trained(project, faults, "faulty")
    return project, faults


def test_every_fault_was_there(runs: tuple[Project, Faulty]) -> None:
    _, faults = runs
    requests = sum(faults.seen.values())
    for name, share, _ in FAULTS:
        assert faults.faults[name] > share * requests / 2, faults.faults
    assert faults.faults["malformed"] >= 1


def test_no_attempt_is_lost_and_none_is_scored_for_a_fault(runs: tuple[Project, Faulty]) -> None:
    """Every attempt that was begun has ended, every task has its score, and it is that of the run without faults."""
    project, _ = runs
    events = project.lines("faulty/events.jsonl")
    count = Counter(event["event"] for event in events)
    assert count["attempt_started"] == count["attempt_finished"] > 80
    assert scores(project, "faulty") == scores(project, "whole")
    assert project.json("faulty/summary.json")["missing_outcomes"] == 0


def scores(project: Project, out: str) -> dict[tuple[str, ...], float]:
    """The score of each attempt by skill, task and sample."""
    rows = project.lines(f"{out}/outcomes.jsonl")
    return {(row["skill_hash"], row["id"], str(row["sample"])): row["hard"] for row in rows if "hard" in row}


TOLD = (
    "action", "reason", "rollout_hard", "rollout_n", "rollout_missing", "selection_hard", "selection_bound",
    "selection_asked", "selection_compared", "selection_missing", "bar", "current_score", "best_score",
    "candidate_hash",
)  # fmt: skip
"""What a decision rests on."""


def test_the_decisions_are_those_of_the_run_without_faults(runs: tuple[Project, Faulty]) -> None:
    project, _ = runs
    whole, faulty = (project.json(f"{out}/history.json") for out in ("whole", "faulty"))
    assert [[step[name] for name in TOLD] for step in faulty] == [[step[name] for name in TOLD] for step in whole]
    assert {step["action"] for step in whole} >= {"accept_new_best", "reject"}, "a run in which something is decided"
    best = [(project.folder / out / "best_skill.md").read_text() for out in ("whole", "faulty")]
    assert best[0] == best[1]


def test_each_decision_says_what_it_rests_on(runs: tuple[Project, Faulty]) -> None:
    project, _ = runs
    for step in project.json("faulty/history.json"):
        if step["action"].startswith("skip_"):
            continue
        assert step["reason"]
        assert 0 < step["selection_compared"] <= step["selection_asked"] <= 12
        assert (step["selection_hard"] is None) == (step["selection_bound"] is not None)


def test_retries_and_waits_are_visible(runs: tuple[Project, Faulty]) -> None:
    project, faults = runs
    calls = [event for event in project.lines("faulty/events.jsonl") if event["event"] == "model_called"]
    again = sum(event["tries"] - 1 for event in calls)
    assert again == sum(faults.faults[name] for name, *_ in FAULTS)
    assert all(event["ok"] for event in calls)
    assert sum(event["waited"] for event in calls) > 0
    assert project.json("faulty/summary.json")["token_summary"]["_total"]["calls"] == len(calls)
