"""A scorer that the configuration chooses, in whole runs: its errors before it, its judge's calls in the ledger."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scored_plugins import make_scored
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.servers import ChatServer, Reply
from skillopt_testkit.wording import proposal

TEMPLATE, OUTCOME = "Begin with the heading Results.", "Give the measured mean."
REFERENCE = {"rubric": "It gives the mean, 4.", "reference": "4", "contains": "## Results"}


class World:
    """The target does what the skill says; the optimizer proposes the template first; the judge sees the outcome."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.verdict = '{{"reasoning": "It {} the mean.", "score": {}}}'

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        system, user = (str(body["messages"][at]["content"]) for at in (0, -1))
        if body["model"] == "target":
            parts = ["## Results"] * (TEMPLATE in system) + ["The mean is 4."] * (OUTCOME in system)
            return Reply("\n".join(parts or ["I have measured it."]))
        if body["model"] == "judge":
            self.judged.append(user)
            met = "mean is 4" in user.partition("## Answer to grade")[2]
            return Reply(self.verdict.format("gives" if met else "lacks", 1 if met else 0.1))
        rule = OUTCOME if TEMPLATE in system + user else TEMPLATE
        return Reply(proposal(rule))


def test_the_outcome_decides_and_not_the_wording_that_a_template_meets(tmp_path: Path) -> None:
    """O-H3: the first edit raises the literal check from 0 to 1 and is rejected; the second earns its place."""
    world = World()
    with ChatServer(world) as server:
        project = make_scored(tmp_path, REFERENCE, server.url, scorer="llm_judge")
        project.run("train", "config.yaml", "--out", "run", "-q").ok()
        asked = len(world.judged)
        project.run("train", "config.yaml", "--out", "run", "-q")
        assert len(world.judged) == asked, "a finished run asks the judge nothing again"
    history = project.json("run/history.json")
    assert [step["action"] for step in history] == ["reject", "accept_new_best"]
    skill = (tmp_path / "run" / "best_skill.md").read_text()
    assert OUTCOME in skill
    assert TEMPLATE not in skill
    ledger = Ledger(tmp_path / "run" / "calls.sqlite", read_only=True)
    calls = [call for call in ledger.calls() if call["role"] == "judge"]
    ledger.close()
    assert len(calls) == asked
    assert {call["stage"] for call in calls} == {"judge"}
    assert all("It gives the mean, 4." in each and "? " not in each.partition("\n")[0] for each in world.judged)
    rows = [row for path in (tmp_path / "run").rglob("results.jsonl") for row in project.lines(path)]
    literal = {row["scores"]["contains"]: row["soft"] for row in rows}
    assert literal.get(1.0) == 0.1, "the candidate that meets the wording was scored by its outcome"


def test_a_judge_whose_replies_are_no_use_leaves_no_score(tmp_path: Path) -> None:
    world = World()
    world.verdict = "{0} {1}, I should say"
    with ChatServer(world) as server:
        project = make_scored(tmp_path, REFERENCE, server.url, scorer="llm_judge")
        ended = project.run("train", "config.yaml", "--out", "run", "-q")
    assert ended.code == 3, ended.err
    assert "judge: the judge's reply could not be used, the reminder included" in ended.err
    assert "Traceback" not in ended.err
    assert any("Your last reply to this request could not be used" in each for each in world.judged)


def test_a_program_that_fails_leaves_no_score_and_is_told(tmp_path: Path) -> None:
    code = "import sys; sys.exit('no licence')"
    with ChatServer(World()) as server:
        project = make_scored(
            tmp_path, "4", server.url, scorer={"name": "command", "command": [sys.executable, "-c", code]}
        )
        ended = project.run("train", "config.yaml", "--out", "run", "-q")
    assert ended.code == 3, ended.err
    assert "ended with exit code 1; its last words: 'no licence'" in ended.err


def test_a_function_beside_the_configuration_scores_and_another_scorer_is_another_run(tmp_path: Path) -> None:
    with ChatServer(World()) as server:
        project = make_scored(
            tmp_path, "4", server.url, scorer={"name": "python", "function": "mine:score", "path": ["."]}
        )
        project.write("mine.py", "def score(answer, reference):\n    return reference in answer\n")
        project.run("train", "config.yaml", "--out", "run", "-q").ok()
        assert OUTCOME in (tmp_path / "run" / "best_skill.md").read_text()
        stored = project.json("run/config.json")
        refused = project.run("train", "config.yaml", "--out", "run", "-q", "-o", "env.scorer=exact")
        # What a run directory holds is read as a configuration again.
        project.write("again.json", json.dumps(stored))
        shown = project.run("config", "show", "again.json").ok()
    assert stored["env"]["scorer"]["name"] == "python"
    assert stored["env"]["scorer"]["provider"].startswith("skillopt-scorers ")
    assert "env.scorer" in refused.err and "python" in refused.err
    assert "mine:score" in shown.out


@pytest.mark.parametrize(
    ("scorer", "words"),
    [
        ("exakt", ("config.yaml:", "env.scorer: there is no scorer named 'exakt'. Did you mean 'exact'?")),
        ({"name": "numeric", "tolerance": 1}, ("config.yaml:", "env.scorer.tolerance: is no key")),
        ({"name": "regex", "pattern": "("}, ("the scorer regex: '(' is no regular expression",)),
        ({"name": "python", "function": "mine:score"}, ("No module named 'mine'", "add `path: [.]`")),
        ({"name": "command"}, ("the scorer command needs `command`",)),
        ({"name": "json", "schema": {"type": "objekt"}}, ("is no JSON schema",)),
        ({"name": "json", "fields": {"a": "exakt"}}, ("env.scorer.fields[a]: there is no scorer",)),
        ({"name": "llm_judge", "rubric_file": "gone.md"}, ("env.scorer.rubric_file", "gone.md' is not at")),
    ],
)
def test_a_scorer_that_cannot_be_used_is_told_before_anything_is_asked(
    tmp_path: Path, scorer: Any, words: tuple[str, ...]
) -> None:
    project = make_scored(tmp_path, "4", scorer=scorer)
    project.run("train", "config.yaml", "--out", "run").refused(*words)
    assert not (tmp_path / "run").exists()
