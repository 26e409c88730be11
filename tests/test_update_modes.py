"""Training the demo with each update mode and each way to control the budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel import RunSummary, train
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

MODES = ("patch", "rewrite_from_suggestions", "full_rewrite_minibatch")
CONTROLS = ("fixed", "autonomous", "none")
SHORT = ("train.num_epochs=1", "evaluation.eval_test=false")
GUIDED = "---\nname: trivia\n---\n\n# Answering\n\n- Be short.\n\n<!-- SLOW_UPDATE_START -->\nKeep to the rules.\n"
GUIDED += "<!-- SLOW_UPDATE_END -->\n"


def run(folder: Path, *optimizer: str, more: tuple[str, ...] = ()) -> tuple[RunSummary, list[dict[str, Any]]]:
    """The summary and the steps of the demo with these keys of the section `optimizer`."""
    summary = train("demo", [*(f"optimizer.{key}" for key in optimizer), *more], out=folder)
    return summary, read(folder / "history.json")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def calls(summary: RunSummary, stage: str) -> int:
    count: int = summary.token_summary.get(stage, {}).get("calls", 0)
    return count


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("control", CONTROLS)
def test_every_mode_climbs_under_every_control(tmp_path: Path, mode: str, control: str) -> None:
    summary, steps = run(tmp_path / "run", f"skill_update_mode={mode}", f"lr_control_mode={control}")
    assert summary.baseline_test_hard == 0.2
    assert summary.test_hard is not None and summary.test_hard > 0.6
    assert summary.total_accepts >= 2
    assert not summary.model_failures
    asked = mode != "full_rewrite_minibatch"
    assert {step["lr_control_mode"] for step in steps} == {control if asked else "none"}
    limits = [step["edit_budget"] for step in steps if step["action"] != "skip_no_patches"]
    planned = {step["planned_edit_budget"] for step in steps}
    if control == "fixed" and asked:
        assert set(limits) == planned == {2, 3}
    else:
        assert planned == {None}
        assert (None not in limits) == (control == "autonomous" and asked)
    assert (calls(summary, "lr_autonomous") > 0) == (control == "autonomous" and asked)
    assert (calls(summary, "rewrite") > 0) == (mode == "rewrite_from_suggestions")
    assert (calls(summary, "ranking") > 0) == (control != "none" and asked)


def test_decisions_are_written_down_and_bind(tmp_path: Path) -> None:
    _, steps = run(tmp_path / "run", "lr_control_mode=autonomous", "lr_scheduler=constant", more=SHORT)
    decisions = [step for step in steps if step["lr_decision"]]
    assert decisions
    lines = [json.loads(line) for line in (tmp_path / "run/lr_history.jsonl").read_text("utf-8").splitlines()]
    assert lines == [{"step": one["step"], "epoch": one["epoch"], **one["lr_decision"]} for one in decisions]
    for step in decisions:
        told = step["lr_decision"]
        assert told == read(tmp_path / f"run/steps/step_{step['step']:04d}/lr_decision.json")
        assert step["edit_budget"] == told["learning_rate"] <= told["available_update_items"] == step["n_edits_merged"]
        assert step["edit_apply_summary"].get("applied", 0) <= told["learning_rate"]
        assert (told["fallback"], told["raw_response"]["learning_rate"]) == (False, told["raw_learning_rate"])


def test_the_scheduler_can_be_named_too(tmp_path: Path) -> None:
    _, by_control = run(tmp_path / "a", "lr_control_mode=autonomous", more=SHORT)
    _, by_name = run(tmp_path / "b", "lr_scheduler=autonomous", more=SHORT)
    assert [step["edit_budget"] for step in by_name] == [step["edit_budget"] for step in by_control]
    assert any(step["lr_decision"] for step in by_name)


def test_a_rewrite_leaves_its_reply_and_keeps_what_is_protected(tmp_path: Path) -> None:
    (tmp_path / "start.md").write_text(GUIDED, encoding="utf-8")
    more = (*SHORT, f"env.skill_init={tmp_path / 'start.md'}")
    summary, steps = run(tmp_path / "run", "skill_update_mode=rewrite", more=more)
    assert summary.total_accepts >= 1
    for step in steps:
        folder = tmp_path / f"run/steps/step_{step['step']:04d}"
        if step["action"] == "skip_no_patches":
            continue
        result = read(folder / "rewrite_result.json")
        assert set(result) == {"reasoning", "change_summary", "new_skill"}
        assert step["rewrite_change_summary"] == result["change_summary"]
        assert "revise_suggestions" in read(folder / "merged_patch.json")
    best = (tmp_path / "run/best_skill.md").read_text(encoding="utf-8")
    assert best.startswith("---\nname: trivia\n---\n\n# Answering\n\n- Be short.\n")
    assert best.endswith("\n\n" + GUIDED[GUIDED.index("<!-- SLOW") :])
    assert len(best) > len(GUIDED)


def test_a_whole_skill_leaves_its_candidates_and_keeps_what_is_protected(tmp_path: Path) -> None:
    (tmp_path / "start.md").write_text(GUIDED, encoding="utf-8")
    more = (*SHORT, f"env.skill_init={tmp_path / 'start.md'}")
    summary, _ = run(tmp_path / "run", "skill_update_mode=full_rewrite", more=more)
    assert summary.total_accepts >= 1
    result = read(tmp_path / "run/steps/step_0001/full_rewrite_result.json")
    assert set(result) == {"selected_candidate", "merged_patch"}
    assert result["selected_candidate"] == result["merged_patch"]["skill_candidates"][0]
    best = (tmp_path / "run/best_skill.md").read_text(encoding="utf-8")
    assert best.startswith("---\nname: trivia\n---\n\n# Answering\n")
    assert best.endswith("\n\n" + GUIDED[GUIDED.index("<!-- SLOW") :])


@pytest.mark.parametrize("mode", MODES[1:])
def test_the_same_run_gives_the_same_skill(tmp_path: Path, mode: str) -> None:
    for name in "ab":
        run(tmp_path / name, f"skill_update_mode={mode}", "lr_control_mode=autonomous", more=SHORT)
    first, second = ((tmp_path / name / "best_skill.md").read_bytes() for name in "ab")
    assert first == second


def test_a_run_that_goes_on_ends_as_one_that_ran_through(tmp_path: Path) -> None:
    keys = ("skill_update_mode=rewrite", "lr_control_mode=autonomous", "use_slow_update=false", "use_meta_skill=false")
    for epochs in (1, 2):
        run(tmp_path / "a", *keys, more=(f"train.num_epochs={epochs}", "evaluation.eval_test=false"))
    run(tmp_path / "b", *keys, more=("train.num_epochs=2", "evaluation.eval_test=false"))
    for name in ("best_skill.md", "lr_history.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("fault", ["malformed_replies", "empty_replies", "refusals"])
def test_bad_replies_are_counted_and_end_nothing(tmp_path: Path, mode: str, fault: str) -> None:
    keys = (f"skill_update_mode={mode}", "lr_control_mode=autonomous", "use_slow_update=false")
    summary, steps = run(tmp_path / "run", *keys, more=(*SHORT, f"model.optimizer_simulated_{fault}=0.8"))
    assert summary.status == "finished"
    assert summary.total_steps == 4
    assert sum(summary.model_failures.values()) > 0
    for step in steps:
        if step["lr_decision"] and step["lr_decision"]["fallback"]:
            assert step["edit_budget"] == 0
            assert step["action"] in ("skip_no_rewrite", "skip_no_change")


# Over HTTP, where what is sent can be read ------------------------------------------------------------------

RULE = "- Answer with the number alone."


class Answers:
    """A model over HTTP; what fails is asked for by stage. Keeps the optimizer's requests by what they ask for."""

    def __init__(self, bad: str = "") -> None:
        self.bad = bad
        self.asked: dict[str, list[Mapping[str, Any]]] = {"rewrite": [], "rate": [], "analyst": [], "merge": []}

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        system = body["messages"][0]["content"]
        if body["model"] == "target":
            return Reply("<answer>42</answer>" if RULE[2:] in system else "<answer>it is 42</answer>")
        whole = {"title": "t", "change_summary": ["a rule"], "new_skill": f"# Skill\n\n{RULE}\n"}
        suggestion = {"type": "add_rule", "title": "t", "instruction": RULE}
        if "You are the editor" in system:
            kind, value = "rewrite", whole
        elif '"learning_rate"' in system:
            kind, value = "rate", {"learning_rate": 1, "reasoning": "", "confidence": "high", "risk_notes": ""}
        else:
            kind = "analyst" if "batch_size" in system else "merge"
            lists = {"revise_suggestions": [suggestion], "skill_candidates": [whole]}
            value = {"batch_size": 2, **lists, "patch": lists} if kind == "analyst" else lists
        self.asked[kind].append(body)
        return Reply("I would rather not." if kind == self.bad else json.dumps(value))


def trained(
    folder: Path, answers: Answers, prompts: Mapping[str, str] | None = None, **optimizer: Any
) -> tuple[Project, list[dict[str, Any]]]:
    project = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": "sk-0123456789"})
    for split, count, first in (("train", 8, 0), ("val", 4, 8), ("test", 2, 12)):
        items = [
            {"id": f"t{n}", "question": f"Which number is {n}?", "context": "", "answers": ["42"]}
            for n in range(first, first + count)
        ]
        project.write(f"data/{split}/items.json", json.dumps(items))
    with ChatServer(answers) as server:
        sections = {
            "_base_": "package:skillopt_kernel/default.yaml",
            "train": {"num_epochs": 1, "batch_size": 4},
            "gradient": {"minibatch_size": 2},
            "optimizer": {"use_slow_update": False, "use_meta_skill": False, **optimizer},
            "model": {
                "backend": "openai_compatible", "openai_compatible_base_url": server.url,
                "optimizer": "optimizer", "target": "target", "rewrite_max_completion_tokens": 5000,
            },
            "prompts": prompts or {},
            "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": 4},
        }  # fmt: skip
        project.write("config.yaml", json.dumps(sections))
        project.run("train", "config.yaml", "--out", "run").ok()
    return project, project.json("run/history.json")


def limits(bodies: list[Mapping[str, Any]]) -> set[Any]:
    return {body.get("max_completion_tokens", body.get("max_tokens")) for body in bodies}


def test_whole_texts_have_a_limit_of_their_own(tmp_path: Path) -> None:
    answers = Answers()
    _, steps = trained(tmp_path / "a", answers, skill_update_mode="rewrite_from_suggestions", lr_control_mode="auto")
    assert steps[0]["action"] == "accept_new_best"
    assert {kind: limits(bodies) for kind, bodies in answers.asked.items()} == {
        "rewrite": {5000}, "analyst": {16384}, "merge": {16384}, "rate": {16384},
    }  # fmt: skip
    answers = Answers()
    _, steps = trained(tmp_path / "b", answers, skill_update_mode="full_rewrite_minibatch")
    assert steps[0]["action"] == "accept_new_best"
    assert {kind: limits(bodies) for kind, bodies in answers.asked.items() if bodies} == {
        "analyst": {5000}, "merge": {5000},
    }  # fmt: skip


def test_the_rewrite_is_told_what_was_tried_and_its_prompt_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "rewrite.md").write_text("You are the editor of this house. Reply with JSON.\n", encoding="utf-8")
    answers = Answers()
    prompts = {"rewrite": "rewrite.md"}
    _, steps = trained(tmp_path, answers, prompts=prompts, skill_update_mode="rewrite_from_suggestions")
    assert [step["action"] for step in steps] == ["accept_new_best", "skip_no_change"]
    first, second = (body["messages"] for body in answers.asked["rewrite"])
    assert first[0]["content"].strip() == "You are the editor of this house. Reply with JSON."
    assert "## Suggestions (1)" in first[1]["content"] and RULE in first[1]["content"]
    assert "## What was tried before" not in first[1]["content"]
    assert "## What was tried before\n\n### Step 1: ACCEPT_NEW_BEST" in second[1]["content"]


@pytest.mark.parametrize("bad", ["rewrite", "rate"])
def test_a_reply_that_cannot_be_used_is_a_step_without_a_rewrite(tmp_path: Path, bad: str) -> None:
    answers = Answers(bad)
    project, steps = trained(tmp_path, answers, skill_update_mode="suggestions", lr_control_mode="autonomous")
    assert {step["action"] for step in steps} == {"skip_no_rewrite"}
    assert all(step["model_failures"] == {"unusable_reply": 1} for step in steps)
    assert project.json("run/summary.json")["model_failures"] == {"unusable_reply": len(steps)}
    assert len(answers.asked[bad]) == 2 * len(steps), "each is reminded of once"
    decisions = project.lines("run/lr_history.jsonl")
    assert [line["fallback"] for line in decisions] == [bad == "rate"] * len(steps)
    assert len(answers.asked["rewrite"]) == (4 if bad == "rewrite" else 0)
