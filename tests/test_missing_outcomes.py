"""Whole runs over HTTP in which tasks stay without a score: asked again, and too few scores decide nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from http_world import RULES, answer, configure, make_project
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

TOLD = ("action", "rollout_hard", "rollout_missing", "selection_hard", "selection_asked", "selection_missing", "bar")


class Losing:
    """Turns each target request with one of these texts away so many times, with a wait that nobody would bear."""

    def __init__(self, *texts: str, times: int = 1_000, only_at_first: bool = False) -> None:
        """only_at_first: with the start skill, and not of those that have learned a rule."""
        self.texts, self.times, self.only_at_first = texts, times, only_at_first
        self.count: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()

    def __call__(self, body: Mapping[str, Any]) -> Reply | str:
        system, user = (str(body["messages"][place]["content"]) for place in (0, -1))
        if self.only_at_first and any(rule in system for rule in RULES.values()):
            return answer(body)
        with self.lock:
            for text in self.texts:
                self.count[text, system] += text in user and body["model"] == "target"
                if text in user and body["model"] == "target" and self.count[text, system] <= self.times:
                    return Reply("come back tomorrow", status=429, headers={"Retry-After": "86400"})
        return answer(body)


def trained(project: Project, script: Any, out: str, **changes: Any) -> list[tuple[Any, ...]]:
    """What each step came to."""
    with ChatServer(script) as server:
        project.run("train", configure(project, server, **changes), "--out", out).ok()
    return [tuple(step[name] for name in TOLD) for step in project.json(f"{out}/history.json")]


def test_a_task_without_a_score_is_asked_again_and_nothing_else_changes(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    whole = trained(project, answer, "whole")
    faulty = trained(project, Losing("line 3?", "line 11?", times=2), "faulty")
    assert faulty == whole
    lost = [row for row in project.lines("faulty/outcomes.jsonl") if "missing" in row]
    assert {(row["id"], row["missing"]["reason"]) for row in lost} == {("t3", "endpoint"), ("t11", "endpoint")}
    assert (tmp_path / "faulty/best_skill.md").read_text() == (tmp_path / "whole/best_skill.md").read_text()
    assert project.json("faulty/summary.json")["missing_outcomes"] == 0


def test_a_step_goes_on_with_the_outcomes_that_have_a_score(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    steps = trained(project, Losing("line 3?"), "run", evaluation={"missing_retries": 0})
    assert sum(step[TOLD.index("rollout_missing")] for step in steps) == 1
    assert [step[0] for step in steps] == ["accept_new_best", "accept_new_best"]
    assert sum("missing" in row for row in project.lines("run/outcomes.jsonl")) == 1


def of_candidates(texts: tuple[str, ...]) -> Any:
    """Rejects these questions wherever the skill has a rule: of candidates, and not of the start skill."""

    def script(body: Mapping[str, Any]) -> Reply | str:
        system, user = (str(body["messages"][place]["content"]) for place in (0, -1))
        learned = any(rule in system for rule in RULES.values())
        if body["model"] == "target" and learned and any(text in user for text in texts):
            return Reply("no such request", status=400)
        return answer(body)

    return script


def test_below_the_coverage_the_decision_is_undecided(tmp_path: Path) -> None:
    """Two of eight selection tasks have no score: the candidate is recorded, the current skill stays."""
    project = make_project(tmp_path)
    script = of_candidates(("line 10?", "line 11?"))
    steps = trained(project, script, "run")
    assert [(step[0], step[TOLD.index("selection_missing")]) for step in steps] == [("undecided", 2)] * 2
    (first, _) = project.json("run/history.json")
    assert "6 of 8 selection tasks have a score of both skills" in first["reason"]
    assert "evaluation.min_coverage asks for 95%" in first["reason"]
    assert (first["selection_compared"], first["selection_hard"], first["bar"]) == (6, pytest.approx(2 / 6), 0.0)
    assert (tmp_path / "run/best_skill.md").read_text() == (tmp_path / "skill.md").read_text()
    assert "Of a" in (tmp_path / "run/steps/step_0001/candidate_skill.md").read_text()
    told = project.json("run/steps/step_0001/trajectory_digest.json")
    assert (told["action"], told["rejected_edits"]) == ("undecided", [])
    summary = project.json("run/summary.json")
    assert (summary["total_undecided"], summary["total_rejects"]) == (2, 0)
    events = [event for event in project.lines("run/events.jsonl") if event["event"] == "step_finished"]
    assert [event["action"] for event in events] == ["undecided"] * 2

    lower = trained(project, script, "lower", evaluation={"min_coverage": 0.7})
    assert [step[0] for step in lower] == ["accept_new_best"] * 2


def test_the_optimizer_is_not_told_that_an_undecided_candidate_failed(tmp_path: Path) -> None:
    project, script = make_project(tmp_path), of_candidates(("line 10?", "line 11?"))
    with ChatServer(script) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
        asked = [str(received.body["messages"]) for received in server.requests if received.body["model"] != "target"]
    later = [text for text in asked if "### Step 1" in text]
    assert later
    assert all("UNDECIDED" in text for text in later)
    assert not any("did not help" in text or "Do not propose" in text for text in asked)


def test_what_the_current_skill_lacks_is_asked_again_before_each_decision(tmp_path: Path) -> None:
    """The baseline misses two tasks; by the time the gate compares, the endpoint has recovered."""
    project = make_project(tmp_path)
    whole = trained(project, answer, "whole")
    faulty = trained(project, Losing("line 11?", "line 13?", times=3, only_at_first=True), "faulty")
    assert faulty == whole
