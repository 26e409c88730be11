"""`optimizer.max_skill_tokens`: refused before anything is spent, told in advance, warned of when long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.loop.length import long_skill, refused_for_length, room_left, tokens_of
from skillopt_testkit.project import KINDS, Project
from skillopt_testkit.servers import ChatServer, Reply

import skillopt_core
from skillopt_core import Edit, Proposal, SlowUpdate, hookimpl

RULES = list(KINDS.values())
LONG_RULE = "Explain nothing. " * 40


class Lab:
    """Proposes a rule that fits in the first epoch, one that does not in the second; then guidance likewise."""

    def __init__(self, guidance: str = "") -> None:
        self.guidance = guidance

    @hookimpl
    def skillopt_reflect(self, step: Any) -> tuple[Proposal, ...]:
        rule = RULES[0] if step.epoch == 1 else LONG_RULE
        return (Proposal("lesson", "failure", items=(Edit("append", f"- {rule}"),)),)

    @hookimpl
    def skillopt_slow_update(self, epoch: Any) -> SlowUpdate:
        return SlowUpdate(self.guidance or None)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def train(project: Project, lab: object, *overrides: str, out: str = "run") -> Any:
    base = ("train.batch_size=12", "optimizer.use_slow_update=true", "evaluation.eval_test=false")
    config = project.folder / "config.yaml"
    return skillopt_core.train(config, (*base, *overrides), out=project.folder / out, plugins=[("lab", lab)])


def test_the_estimate_is_a_token_for_four_bytes_of_what_the_target_is_shown() -> None:
    guided = "Answer.\n\n<!-- SLOW_UPDATE_START -->\nBe brief.\n<!-- SLOW_UPDATE_END -->\n"
    assert [tokens_of(text) for text in ("", "abcd", "abcde", "äöü")] == [0, 1, 2, 2]
    assert tokens_of(guided) == tokens_of("Answer.\n\nBe brief.\n")
    assert refused_for_length("abcd", "", 1) is None and refused_for_length("abcde" * 99, "", 0) is None
    refused = refused_for_length("abcde", "old", 1)
    assert refused is not None and (refused.action, refused.skill, refused.asked) == ("reject", "old", 0)
    assert room_left("abcd", 0) == "" and "It has 1, so there is room for 9 more" in room_left("abcd", 10)
    assert "room for 0 more" in room_left("abcd" * 11, 10)
    assert long_skill("abcd" * 2000) == "" and "about 2,001 tokens" in long_skill("abcd" * 2001)


def test_a_longer_candidate_is_refused_before_a_call_is_spent_on_it(project: Project) -> None:
    summary = train(project, Lab(), "optimizer.max_skill_tokens=60")
    first, second = project.json("run/history.json")
    assert (first["action"], second["action"], summary.total_rejects) == ("accept_new_best", "reject", 1)
    assert second["candidate_skill_tokens"] > 60 > first["candidate_skill_tokens"]
    assert f"about {second['candidate_skill_tokens']:,} tokens, more than the 60 of optimizer.max" in second["reason"]
    assert (second["selection_asked"], second["candidate_gate_score"], second["bar"]) == (0, None, None)
    assert second["current_score"] == first["current_score"]
    asked = {row["skill_hash"] for row in project.lines("run/outcomes.jsonl")}
    assert (
        second["candidate_hash"] not in asked and not (project.folder / "run/steps/step_0002/selection_eval").exists()
    )
    digest = project.json("run/steps/step_0002/trajectory_digest.json")
    assert digest["refused"] == second["reason"] and len(digest["rejected_edits"]) == 1
    assert "1 candidates were refused untried: they were longer than optimizer.max_skill_tokens (60)." in summary.notes
    assert LONG_RULE not in (project.folder / "run/best_skill.md").read_text("utf-8")


@pytest.mark.parametrize("gated", ["true", "false"])
def test_guidance_counts_too_whether_it_is_judged_or_forced(project: Project, gated: str) -> None:
    options = ("train.num_epochs=1", f"optimizer.slow_update_gate_with_selection={gated}")
    train(project, Lab("Mind. " * 60), *options, "optimizer.max_skill_tokens=60")
    result = project.json("run/slow_update/epoch_01/slow_result.json")
    assert result["action"] == "reject" and "more than the 60 of optimizer.max_skill_tokens" in result["reason"]
    assert not (project.folder / "run/slow_update/epoch_01/selection_eval").exists()
    assert "SLOW_UPDATE" not in (project.folder / "run/best_skill.md").read_text("utf-8")


def test_without_the_gate_the_limit_still_holds(project: Project) -> None:
    train(project, Lab(), "optimizer.max_skill_tokens=60", "evaluation.use_gate=false")
    assert [step["action"] for step in project.json("run/history.json")] == ["force_accept", "reject"]


def test_a_start_skill_beyond_the_limit_is_refused_with_the_numbers(project: Project) -> None:
    project.write("skill.md", "Answer. " * 50)
    done = project.run("train", "config.yaml", "--out", "run", "-o", "optimizer.max_skill_tokens=99")
    done.refused("-o: optimizer.max_skill_tokens: is 99, but the start skill has about 100 tokens", "env.skill_init")
    assert not (project.folder / "run").exists()
    project.run("train", "config.yaml", "-o", "optimizer.max_skill_tokens=100", "train.num_epochs=1", "-q").ok()
    # A skill is evaluated whatever the limit of the training.
    evaluation = ("eval", "config.yaml", "--skill", "skill.md", "--out", "e", "-o", "optimizer.max_skill_tokens=99")
    project.run(*evaluation).ok()


def warnings_of(project: Project, run: str = "run") -> list[tuple[str, str]]:
    events = project.lines(f"{run}/events.jsonl")
    return [(event["event"], event["warning"]) for event in events if event.get("warning")]


def test_a_long_skill_is_warned_of_once(project: Project) -> None:
    class Longer:
        @hookimpl
        def skillopt_reflect(self, step: Any) -> tuple[Proposal, ...]:
            return (Proposal("lesson", "failure", items=(Edit("append", f"- {RULES[step.epoch - 1]} " + "x" * 8100),)),)

    train(project, Longer(), "evaluation.use_gate=false")
    ((where, warning),) = warnings_of(project)
    assert where == "step_finished" and "the skill has about 2,0" in warning and "every use of it costs" in warning
    train(project, Lab(), out="short")
    assert not warnings_of(project, "short")


def test_a_long_start_skill_is_warned_of_at_the_start(project: Project) -> None:
    project.write("skill.md", "Answer. " * 1001)
    out = project.run("train", "config.yaml", "--out", "run", "-o", "train.num_epochs=1").ok().out
    assert out.count("Warning: the skill has about 2,002 tokens") == 1
    assert [where for where, _ in warnings_of(project)] == ["run_started"]


@pytest.mark.parametrize("mode", ["patch", "rewrite_from_suggestions"])
def test_whoever_writes_the_skill_is_told_the_room_left(tmp_path: Path, mode: str) -> None:
    told: list[str] = []

    def model(body: Mapping[str, Any]) -> Reply:
        system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
        if body["model"] == "target":
            return Reply("<answer>it is 42</answer>")
        told.append(user)
        if '"selected_indices"' in system:
            return Reply('{"reasoning": "", "selected_indices": [0]}')
        if '"new_skill"' in system:
            return Reply(
                json.dumps({"reasoning": "", "change_summary": [], "new_skill": "# Answering\n\n- Be short.\n"})
            )
        rules = [f"- Rule {number}." for number in range(3)]
        edits = [{"op": "append", "content": rule} for rule in rules]
        ideas = [{"type": "add_rule", "title": r, "motivation": "m", "instruction": r} for r in rules]
        items = {"edits": edits, "revise_suggestions": ideas}
        return Reply(json.dumps({"reasoning": "", **items, "patch": {"reasoning": "", **items}}))

    project = Project.make(tmp_path, train=4, selection=2, test=2)
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": "sk-none"})
    with ChatServer(model) as server:
        settings = {
            "_base_": "config.yaml",
            "train": {"num_epochs": 1, "batch_size": 4},
            "gradient": {"minibatch_size": 2},
            "optimizer": {"max_skill_tokens": 200, "learning_rate": 1, "skill_update_mode": mode},
            "model": {
                "optimizer_backend": "openai_compatible", "target_backend": "openai_compatible",
                "openai_compatible_base_url": server.url, "optimizer": "optimizer", "target": "target",
            },
        }  # fmt: skip
        project.write("mine.yaml", json.dumps(settings))
        project.run("train", "mine.yaml", "--out", "run").ok()
        limited, told = told, []
        project.run("train", "mine.yaml", "--out", "free", "-o", "optimizer.max_skill_tokens=0").ok()
    kinds = ("## Trajectories", "## Patches", "## Candidate edits", "## Suggestions (1)")
    assert [any(kind in text for text in limited) for kind in kinds] == [True, True, True, mode != "patch"]
    room = "## Room left\n\nThe skill may have about 200 tokens, one for four bytes. It has 9, so there is room for 191"
    assert [text for text in limited if room not in text] == []
    assert told and not any("Room left" in text for text in told)
