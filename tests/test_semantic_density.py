"""Whole runs with `evaluation.use_semantic_density`: the bonus is in every gate score and in nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from skillopt_hook_semantic_density.density import density
from skillopt_hook_semantic_density.settings import listed
from skillopt_testkit.project import Project

import skillopt_core
from skillopt_core import Edit, Proposal, hookimpl, load_config

SWITCHED_ON = """\
_base_: config.yaml
evaluation:
  use_semantic_density: true
  semantic_density_weight: 0.1
"""
START = "You MUST answer; never guess, always think.\n"
"""Seven words, three of them leading."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)
    made.write("skill.md", START)
    made.write("mine.yaml", SWITCHED_ON)
    return made


def bonus(text: str) -> float:
    return 0.1 * density(text, listed(None))


def test_the_gate_scores_of_a_run_hold_the_bonus_and_the_selection_scores_do_not(project: Project) -> None:
    project.run("train", "mine.yaml", "--out", "run").ok()
    summary = project.json("run/summary.json")
    baseline = summary["baseline_selection_hard"]
    assert summary["baseline_gate_score"] == pytest.approx(baseline + 0.1 * 3 / 7, abs=1e-12)
    best = (project.folder / "run/best_skill.md").read_text(encoding="utf-8")
    assert summary["best_gate_score"] == pytest.approx(summary["best_selection_hard"] + bonus(best), abs=1e-12)
    scored = 0
    for record in project.json("run/history.json"):
        candidate = project.folder / f"run/steps/step_{record['step']:04d}/candidate_skill.md"
        if record.get("candidate_gate_score") is None:
            continue
        scored += 1
        text = candidate.read_text(encoding="utf-8")
        assert record["candidate_gate_score"] == pytest.approx(record["selection_hard"] + bonus(text), abs=1e-12)
        assert round(record["selection_hard"] * 12, 9).is_integer(), "twelve tasks, passed or not"
    assert scored, "some candidate was asked everything"
    assert bonus(best) > 0


class Shouting:
    """Proposes in every step a line that changes no answer, full of leading words."""

    @hookimpl
    def skillopt_reflect(self) -> tuple[Proposal, ...]:
        return (Proposal("loud", "failure", items=(Edit("append", "- MUST ALWAYS NEVER ONLY VERIFY."),)),)


@pytest.mark.parametrize("used", [True, False])
def test_words_that_change_no_answer_pass_the_gate_for_the_bonus_alone(project: Project, used: bool) -> None:
    settings = {"_base_": "mine.yaml", "evaluation": {"use_semantic_density": used}, "train": {"num_epochs": 1}}
    path = project.write("other.yaml", json.dumps(settings))
    summary = skillopt_core.train(path, out=project.folder / "run", plugins=[("shouting", Shouting())])
    assert summary.best_selection_hard == summary.baseline_selection_hard
    actions = [record["action"] for record in project.json("run/history.json")]
    assert actions[0] == ("accept_new_best" if used else "reject")


def test_the_origins_say_which_key_switched_it_on(project: Project) -> None:
    shown = project.run("config", "show", "mine.yaml", "--origins").ok().out.splitlines()
    (plugins,) = [line for line in shown if line.startswith("  plugins: ")]
    (settings,) = [line for line in shown if line.startswith("  settings: ")]
    assert '["semantic_density"]' in plugins and "mine.yaml:3:3: evaluation.use_semantic_density" in plugins
    assert '"semantic_density_weight": 0.1' in settings
    assert "mine.yaml:4:3: evaluation.semantic_density_weight" in settings
    explained = project.run("hooks", "explain", "mine.yaml").ok().out
    assert "skillopt_score_bonus: semantic_density" in explained


def test_the_weight_is_part_of_the_fingerprint(project: Project) -> None:
    def fingerprint(*overrides: str) -> dict[str, Any]:
        return load_config(project.folder / "mine.yaml", overrides, environ={}).fingerprint()

    assert fingerprint() == fingerprint("evaluation.semantic_density_weight=0.1")
    assert fingerprint() != fingerprint("evaluation.semantic_density_weight=0.2")
    assert fingerprint() != fingerprint("evaluation.leading_words=[must]")
    assert fingerprint() != fingerprint("evaluation.use_semantic_density=false")
    assert fingerprint("evaluation.leading_words=must,NEVER") == fingerprint("evaluation.leading_words=[Must, never]")
    project.run("train", "mine.yaml", "--out", "run").ok()
    heavier = ("-o", "evaluation.semantic_density_weight=0.2")
    project.run("train", "mine.yaml", "--out", "run", *heavier).refused("semantic_density", "0.2")
