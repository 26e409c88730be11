"""Each update mode, scheduler, control mode and pair policy: `skillopt train` as a process, its models behind HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from served_world import Served
from skillopt_testkit.project import KINDS, Project, world
from skillopt_testkit.servers import ChatServer

SURE = (
    "{insight: 1.0, harmful: 0.0, distractors: 0.0, duplicates: 0.0, bad_anchors: 0.0, over_budget: 0.0, merging: 1.0,"
    " ranking: 1.0}"
)


@define
class Trained:
    """A finished run, and what its optimizer was asked."""

    project: Project
    served: Served

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.project.json("run/history.json")
        return steps

    def artifact(self, step: int, name: str) -> Any:
        return self.project.json(f"run/steps/step_{step:04d}/{name}")

    def text(self, name: str) -> str:
        return (self.project.folder / "run" / name).read_text(encoding="utf-8")


def run(folder: Path, *, epochs: int = 2, train: int = 12, **optimizer: Any) -> Trained:
    """Train the small project, one step an epoch, with these keys of the section `optimizer`."""
    made = Project.make(folder, train=train, selection=12, test=4)
    project = Project(made.folder, {"OPENAI_COMPATIBLE_API_KEY": "sk-none"})
    project.write("world.yaml", world(SURE))
    served = Served.of(project)
    with ChatServer(served) as server:
        settings = {
            "_base_": "config.yaml",
            "train": {"num_epochs": epochs, "batch_size": 12},
            "gradient": {"minibatch_size": 4},
            "optimizer": optimizer,
            "evaluation": {"eval_test": False},
            "model": {
                "optimizer_backend": "openai_compatible", "target_backend": "openai_compatible",
                "openai_compatible_base_url": server.url, "optimizer": "optimizer", "target": "target",
            },
        }  # fmt: skip
        project.write("mine.yaml", json.dumps(settings))
        project.run("train", "mine.yaml", "--out", "run").ok()
    return Trained(project, served)


def rules_in(text: str) -> int:
    return sum(rule in text for rule in KINDS.values())


# Update modes ----------------------------------------------------------------------------------------------


def test_the_mode_patch_applies_edits_and_asks_for_no_rewrite(tmp_path: Path) -> None:
    done = run(tmp_path, skill_update_mode="patch", learning_rate=2, min_learning_rate=2)
    first = done.steps[0]
    assert first["action"] == "accept_new_best"
    assert first["edit_apply_summary"]["applied"] == 2 == rules_in(done.text("steps/step_0001/candidate_skill.md"))
    assert all('"edits"' in system for system in done.served.systems("analyst"))
    assert {edit["op"] for edit in done.artifact(1, "ranked_edits.json")["edits"]} <= {"append", "insert_after"}
    assert not done.served.systems("rewrite")
    assert not list((tmp_path / "run").rglob("*rewrite_result.json"))


def test_the_mode_rewrite_from_suggestions_sends_the_chosen_ones_and_takes_the_skill_that_comes_back(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, skill_update_mode="rewrite_from_suggestions", learning_rate=2, min_learning_rate=2)
    assert all('"revise_suggestions"' in system for system in done.served.systems("analyst"))
    assert done.served.budgets_told("ranking")[0] == "2"
    assert "## Suggestions (2)" in done.served.users("rewrite")[0]
    reply = done.served.replies("rewrite")[0]
    assert done.text("steps/step_0001/candidate_skill.md").strip() == reply["new_skill"].strip()
    assert done.artifact(1, "rewrite_result.json")["change_summary"] == reply["change_summary"]
    assert done.steps[0]["rewrite_change_summary"] == reply["change_summary"]
    assert (done.steps[0]["action"], rules_in(reply["new_skill"])) == ("accept_new_best", 2)


def test_the_mode_full_rewrite_minibatch_merges_whole_skills_and_knows_no_budget(tmp_path: Path) -> None:
    done = run(tmp_path, skill_update_mode="full_rewrite_minibatch", learning_rate=1, min_learning_rate=1)
    assert all('"skill_candidates"' in system for system in done.served.systems("analyst"))
    assert not done.served.budgets_told() and not done.served.systems("ranking")
    (candidate,) = done.artifact(1, "full_rewrite_result.json")["merged_patch"]["skill_candidates"]
    assert done.text("steps/step_0001/candidate_skill.md").strip() == candidate["new_skill"].strip()
    assert rules_in(candidate["new_skill"]) == 4, "more than the budget of an edit a step"
    assert {step["lr_control_mode"] for step in done.steps} == {"none"}
    assert {step["edit_budget"] for step in done.steps} == {None}


# Schedulers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "budgets"),
    [("constant", [4, 4, 4, 4]), ("linear", [3, 2, 2, 1]), ("cosine", [4, 2, 1, 1])],
)
def test_the_scheduled_value_is_told_to_the_analysts_and_enforced(
    tmp_path: Path, scheduler: str, budgets: list[int]
) -> None:
    """4 to 1 edits over 4 steps: linear 3.25, 2.5, 1.75, 1; cosine 3.56, 2.5, 1.44, 1; halves to even."""
    done = run(tmp_path, epochs=4, lr_scheduler=scheduler, learning_rate=4, min_learning_rate=1)
    assert [step["planned_edit_budget"] for step in done.steps] == budgets
    asked = [step["n_failure_patches"] + step["n_success_patches"] for step in done.steps]
    told = done.served.budgets_told()
    assert set(told) == set(map(str, budgets))
    assert told == sorted(told, reverse=True) and len(told) >= sum(asked)
    for step in done.steps:
        merged = step["action"] != "skip_no_patches"
        assert step["edit_budget"] == step["planned_edit_budget"]
        assert step["n_edits_ranked"] == (min(step["n_edits_merged"], step["edit_budget"]) if merged else 0)
    assert done.served.budgets_told("ranking") == [
        str(step["edit_budget"]) for step in done.steps if step["n_edits_merged"] > step["edit_budget"]
    ]


# Control modes ---------------------------------------------------------------------------------------------


def assert_decided_by_the_optimizer(done: Trained) -> None:
    decided = [step for step in done.steps if step["lr_decision"]]
    replies = [reply["learning_rate"] for reply in done.served.replies("lr_autonomous")]
    assert replies == [step["lr_decision"]["learning_rate"] for step in decided] == [s["edit_budget"] for s in decided]
    assert 4 in replies, "the four rules are lacking at first"
    assert set(done.served.budgets_told()) == {"no limit"}, "an analyst cannot be told what is decided later"
    assert len(done.project.lines("run/lr_history.jsonl")) == len(decided)
    assert all(step["planned_edit_budget"] is None for step in done.steps)


@pytest.mark.parametrize("key", ["lr_control_mode", "lr_scheduler"])
def test_autonomous_as_a_control_mode_or_as_a_scheduler_lets_the_optimizer_decide(tmp_path: Path, key: str) -> None:
    chosen: dict[str, Any] = {key: "autonomous"}
    done = run(tmp_path, learning_rate=1, min_learning_rate=1, **chosen)
    assert_decided_by_the_optimizer(done)
    assert {step["lr_control_mode"] for step in done.steps} == {"autonomous" if key == "lr_control_mode" else "fixed"}


@pytest.mark.parametrize("mode", ["patch", "rewrite_from_suggestions"])
def test_without_control_nothing_is_ranked_and_everything_is_applied(tmp_path: Path, mode: str) -> None:
    done = run(tmp_path, lr_control_mode="none", learning_rate=1, min_learning_rate=1, skill_update_mode=mode)
    assert not done.served.systems("ranking") and not done.served.systems("lr_autonomous")
    assert set(done.served.budgets_told()) == {"no limit"}
    first = done.steps[0]
    assert first["n_edits_merged"] == first["n_edits_ranked"] == 4
    assert (first["edit_budget"], first["lr_control_mode"], first["lr_decision"]) == (None, "none", None)
    assert rules_in(done.text("steps/step_0001/candidate_skill.md")) == 4


def test_fixed_control_asks_the_scheduler_and_ranks_what_is_too_much(tmp_path: Path) -> None:
    done = run(tmp_path, lr_control_mode="fixed", learning_rate=1, min_learning_rate=1)
    assert set(done.served.budgets_told()) == set(done.served.budgets_told("ranking")) == {"1"}
    assert not done.served.systems("lr_autonomous")
    assert [rules_in(done.text(f"skills/skill_v000{step}.md")) for step in (1, 2)] == [1, 2]
    assert len(done.artifact(1, "ranked_edits.json")["over_budget"]) == done.steps[0]["n_edits_merged"] - 1


# Pair policies ---------------------------------------------------------------------------------------------

POLICIES = {
    "mixed": {"persistent_fail", "improved", "stable_success"},
    "changed": {"improved"},
    "unchanged": {"persistent_fail", "stable_success"},
}
"""Policy -> the categories that are shown where one rule was learnt in each epoch and nothing got worse."""


@pytest.mark.parametrize("policy", POLICIES)
def test_the_pair_policy_decides_what_the_slow_update_is_shown(tmp_path: Path, policy: str) -> None:
    done = run(
        tmp_path, learning_rate=1, min_learning_rate=1, use_slow_update=True, use_meta_skill=True,
        slow_update_samples=3 if policy == "changed" else 12, longitudinal_pair_policy=policy,
    )  # fmt: skip
    end = "run/slow_update/epoch_02"
    result, pairs = (done.project.json(f"{end}/{name}.json") for name in ("slow_result", "comparison_pairs"))
    (shown,) = done.served.users("slow_update")
    kept = {pair["category"] for pair in pairs}
    assert kept == set(re.findall(r"^### (\w+) \(\d+\):", shown, re.MULTILINE)) == POLICIES[policy]
    assert [pair["id"] for pair in pairs] == re.findall(r"^#### Pair \d+: (\S+)$", shown, re.MULTILINE)
    counts = {category: count for category, count in result["counts"].items() if count}
    assert sum(counts.values()) > len(pairs) or policy == "mixed"
    assert set(counts) > kept or policy == "mixed", "what is not shown is counted all the same"
    if policy == "changed":
        assert len(pairs) == min(3, counts["improved"]) and sum(counts.values()) > 3, "topped up from further tasks"
