"""A scorer that the configuration chooses, in whole runs: its errors before it, its judge's calls in the ledger."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from here import Here
from scored_plugins import make_scored
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply
from skillopt_testkit.wording import proposal

PLACE = "config.yaml:32:3: env.scorer"
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


def scored(folder: Path, reference: Any, url: str = "http://127.0.0.1:9", **env: Any) -> Project:
    """As `make_scored`, with commands in this process."""
    project = make_scored(folder, reference, url, **env)
    return Here(project.folder, project.environment)


def test_the_outcome_decides_and_not_the_wording_that_a_template_meets(tmp_path: Path) -> None:
    """O-H3: the first edit raises the literal check from 0 to 1 and is rejected; the second earns its place."""
    world = World()
    with ChatServer(world) as server:
        project = scored(tmp_path, REFERENCE, server.url, scorer="llm_judge")
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
        project = scored(tmp_path, REFERENCE, server.url, scorer="llm_judge")
        ended = project.run("train", "config.yaml", "--out", "run", "-q")
    assert ended.code == 3, ended.err
    assert "judge: the judge's reply could not be used, the reminder included" in ended.err
    assert "Traceback" not in ended.err
    assert any("Your last reply to this request could not be used" in each for each in world.judged)


def test_a_program_that_fails_leaves_no_score_and_is_told(tmp_path: Path) -> None:
    code = "import sys; sys.exit('no licence')"
    with ChatServer(World()) as server:
        project = scored(tmp_path, "4", server.url, scorer={"name": "command", "command": [sys.executable, "-c", code]})
        ended = project.run("train", "config.yaml", "--out", "run", "-q")
    assert ended.code == 3, ended.err
    assert "ended with exit code 1; its last words: 'no licence'" in ended.err


def test_a_function_beside_the_configuration_scores_and_another_scorer_is_another_run(tmp_path: Path) -> None:
    with ChatServer(World()) as server:
        project = scored(tmp_path, "4", server.url, scorer={"name": "python", "function": "mine:score", "path": ["."]})
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
        ({"name": "regex", "pattern": "("}, (f"{PLACE}: the scorer regex: '(' is no regular expression",)),
        ({"name": "python", "function": "mine:score"}, (f"{PLACE}: ", "No module named 'mine'", "add `path: [.]`")),
        ({"name": "command"}, (f"{PLACE}: the scorer command needs `command`",)),
        ({"name": "command", "command": ["./gone.py"]}, (f"{PLACE}: the scorer command: './gone.py', looked for at",)),
        ({"name": "json", "schema": {"type": "objekt"}}, (f"{PLACE}: the scorer json: ", "is no JSON schema")),
        (
            {"name": "json", "fields": {"a": {"name": "choice", "labels": "AA"}}},
            (".scorer.fields[a]: the scorer choice",),
        ),
        ({"name": "choice", "labels": "AA"}, (f"{PLACE}: the scorer choice: `labels` must be",)),
        ({"name": "json", "fields": {"a": "exakt"}}, ("env.scorer.fields[a]: there is no scorer",)),
        ({"name": "llm_judge", "rubric_file": "gone.md"}, ("env.scorer.rubric_file", "gone.md' is not at")),
    ],
)
def test_a_scorer_that_cannot_be_used_is_told_before_anything_is_asked(
    tmp_path: Path, scorer: Any, words: tuple[str, ...]
) -> None:
    project = scored(tmp_path, "4", scorer=scorer)
    project.run("train", "config.yaml", "--out", "run").refused(*words)
    assert not (tmp_path / "run").exists()


def test_a_function_that_hangs_costs_its_own_outcome_and_not_the_run(tmp_path: Path) -> None:
    scorer = {"name": "python", "function": "mine:score", "path": ["."], "time_limit": 5}
    with ChatServer(World()) as server:
        project = scored(tmp_path, "4", server.url, scorer=scorer)
        code = "    while task.id == 'train-1': pass\n    return reference in answer\n"
        project.write("mine.py", f"def score(answer, reference, task):\n{code}")
        trained = project.run("train", "config.yaml", "--out", "run").ok()
    rows = [row for path in (tmp_path / "run").rglob("rollout/results.jsonl") for row in project.lines(path)]
    assert {row["id"] for row in rows if row.get("missing")} == {"train-1"}
    assert "no score for train-1: environment: " in trained.err
    assert "the function mine:score took more than 5 seconds and was killed" in trained.err


@pytest.mark.parametrize(
    ("scorer", "reference", "file", "key"),
    [
        ({"name": "llm_judge", "rubric_file": "rubric.md"}, "4", "rubric.md", "rubric_file"),
        ({"name": "json", "schema_file": "rubric.md"}, "4", "rubric.md", "schema_file"),
        ({"name": "python", "function": "mine:score", "path": ["."]}, "4", "parts.py", "function"),
        ({"name": "command", "command": [sys.executable, "score.py"], "folder": "."}, "4", "score.py", "command"),
    ],
)
def test_a_run_is_not_taken_up_again_with_another_file(
    tmp_path: Path, scorer: Any, reference: Any, file: str, key: str
) -> None:
    with ChatServer(World()) as server:
        project = scored(tmp_path, reference, server.url, scorer=scorer)
        project.write("rubric.md", "{}")
        project.write("mine.py", "from parts import right\ndef score(answer):\n    return right\n")
        project.write("parts.py", "right = 0\n")
        project.write("score.py", "print(0)\n")
        project.run("train", "config.yaml", "--out", "run", "-q").ok()
        again = project.run("train", "config.yaml", "--out", "run").ok()
        project.write(file, (tmp_path / file).read_text() + " \n")
        refused = project.run("train", "config.yaml", "--out", "run").refused(
            "was begun with another configuration", f"env.scorer.files.{key}: was ", "begin another run beside it"
        )
    assert "data" not in refused.err
    assert "nothing" in again.out or "finished" in again.out


def own_tasks(folder: Path, url: str, scorer: Any, references: Any) -> Project:
    """A project of the environment `tasks`, whose models are at `url`."""
    project = scored(folder, "4", url)
    config = project.json("config.yaml")
    config["env"] = {"name": "tasks", "data_path": "tasks.jsonl", "skill_init": "skill.md", "scorer": scorer}
    config["env"] |= {"split_mode": "ratio", "split_ratio": "4:2:0", "answer": "whole"}
    config["evaluation"] |= {"eval_test": False}
    project.write("config.yaml", json.dumps(config, indent=1))
    rows = [{"id": f"t{n}", "question": f"Measure {n}.", "reference": each} for n, each in enumerate(references)]
    project.write("tasks.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return project


def test_a_scorer_of_shape_alone_is_told_before_the_run_and_in_the_report_and_is_not_forbidden(tmp_path: Path) -> None:
    """O-H3: the template raises a check that is the same for all; that it says nothing of the outcome is told."""
    sentence = 'in all 8 training tasks the scorer looks for the same text in the answer, "## Results", so that a skill'
    with ChatServer(World()) as server:
        project = own_tasks(tmp_path, server.url, "contains", ["## Results"] * 12)
        assert sentence in " ".join(project.run("doctor", "config.yaml").out.split())
        assert f"Warning: {sentence}" in project.run("plan", "config.yaml").ok().err
        assert not (tmp_path / "run").exists()
        trained = project.run("train", "config.yaml", "--out", "run").ok()
    assert f"Warning: {sentence}" in trained.err
    assert sentence[1:] in " ".join(project.json("run/summary.json")["notes"])
    assert sentence[1:] in (tmp_path / "run" / "report.md").read_text()
    assert TEMPLATE in (tmp_path / "run" / "best_skill.md").read_text(), "it is the user's to choose"


def test_the_stress_fixture_of_a_template_is_rejected_where_the_outcome_is_scored(tmp_path: Path) -> None:
    """O-H3: the same tasks with rubric and literal check for each; the edit that raises the check alone is rejected."""
    references = [{"rubric": "It gives the mean, 4.", "reference": str(n), "contains": "## Results"} for n in range(12)]
    with ChatServer(World()) as server:
        project = own_tasks(tmp_path, server.url, "llm_judge", references)
        trained = project.run("train", "config.yaml", "--out", "run").ok()
    assert "the scorer looks" not in trained.err
    first, second = project.json("run/history.json")[:2]
    assert (first["action"], second["action"]) == ("reject", "accept_new_best")
    rows = project.lines(tmp_path / "run" / "steps" / "step_0001" / "selection_eval" / "results.jsonl")
    assert {(row["scores"]["contains"], row["hard"]) for row in rows if row["scores"]} == {(1.0, 0.0)}
    best = (tmp_path / "run" / "best_skill.md").read_text()
    assert OUTCOME in best
    assert TEMPLATE not in best
