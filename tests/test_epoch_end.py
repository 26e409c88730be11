"""Slow update and meta skill in whole runs: what they write and cost, whom it reaches, what a kill changes."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import KINDS, Project, world
from skillopt_testkit.servers import ChatServer, Reply

import skillopt_core
from skillopt_core import Edit, Proposal, hookimpl

SURE = "{insight: 1.0, harmful: 0.0, distractors: 0.0, duplicates: 0.0}"
HASTY = "{insight: 0.0, harmful: 1.0, distractors: 0.0, duplicates: 0.0}"
HARMFUL = "Explain each answer at length."
COSTS = {"timing", "tokens", "wall_time_s", "total_wall_time_s", "token_summary", "config", "folder"}


class OneRuleAnEpoch:
    """Proposes the rule of one kind in each epoch, and no more: what else there is to learn is left to its end."""

    @hookimpl
    def skillopt_reflect(self, step: Any) -> tuple[Proposal, ...]:
        rule = list(KINDS.values())[step.epoch - 1]
        return (Proposal("lesson", "failure", items=(Edit("append", f"- {rule}"),)),)


class Nothing:
    @hookimpl
    def skillopt_reflect(self) -> tuple[Proposal, ...]:
        return ()


def configure(project: Project, **optimizer: Any) -> Path:
    settings = {"use_slow_update": True, "use_meta_skill": True, **optimizer}
    return project.write("mine.yaml", json.dumps({"_base_": "config.yaml", "optimizer": settings}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def train(project: Project, plugin: object, out: str = "run", *overrides: str, **optimizer: Any) -> Any:
    mine = configure(project, **optimizer)
    return skillopt_core.train(mine, overrides, out=project.folder / out, plugins=[("lab", plugin)])


def test_guidance_that_helps_passes_the_gate_into_its_region(project: Project) -> None:
    project.write("world.yaml", world(SURE))
    summary = train(project, OneRuleAnEpoch())
    assert project.json("run/slow_update/epoch_01/slow_result.json")["action"] == "skip_first_epoch"
    result = project.json("run/slow_update/epoch_02/slow_result.json")
    assert result["action"] == "accept_new_best"
    assert result["prev_hard"] < result["curr_hard"]
    assert sum(result["counts"].values()) == len(project.json("run/slow_update/epoch_02/comparison_pairs.json")) == 12
    best = (project.folder / "run/best_skill.md").read_text()
    body, _, guidance = best.partition("<!-- SLOW_UPDATE_START -->\n")
    rules = list(KINDS.values())
    assert [rule in body for rule in rules] == [True, True, False, False]
    assert [rule in guidance for rule in rules] == [False, False, True, True]
    assert guidance.endswith("<!-- SLOW_UPDATE_END -->\n")
    assert (project.folder / "run/slow_update/epoch_02/skill.md").read_text() == best
    assert (summary.best_origin, summary.best_selection_hard) == ("slow_update_epoch_02", result["selection_hard"])
    assert not summary.notes


def test_guidance_that_harms_is_rejected_and_leaves_nothing_behind(project: Project) -> None:
    """O-M1: the guidance is judged as any edit is."""
    project.write("world.yaml", world(HASTY))
    summary = train(project, OneRuleAnEpoch(), use_meta_skill=False)
    result = project.json("run/slow_update/epoch_02/slow_result.json")
    assert (result["action"], result["slow_update_content"]) == ("reject", f"- {HARMFUL}")
    assert HARMFUL in (project.folder / "run/slow_update/epoch_02/candidate_skill.md").read_text()
    state = project.json("run/runtime_state.json")
    for name in (state["current_skill_path"], "best_skill.md"):
        assert HARMFUL not in (project.folder / "run" / name).read_text()
    assert summary.final_gate_score == summary.best_gate_score
    assert not summary.notes


def test_forced_guidance_gets_the_score_that_it_earns_and_is_named(project: Project) -> None:
    """O-M1: forcing is explicit in configuration and summary; no text bears a score that it was not asked for."""
    project.write("world.yaml", world(HASTY))
    summary = train(project, OneRuleAnEpoch(), slow_update_gate_with_selection=False, use_meta_skill=False)
    assert project.json("run/slow_update/epoch_02/slow_result.json")["action"] == "force_accept"
    assert summary.final_selection_hard < summary.best_selection_hard
    assert HARMFUL not in (project.folder / "run/best_skill.md").read_text()
    assert any("guidance was taken without the gate" in note for note in summary.notes)
    asked = [row for row in project.lines("run/outcomes.jsonl") if row["folder"].startswith("slow_update/epoch_02/sel")]
    assert len({row["id"] for row in asked}) == 12


def test_an_epoch_that_changed_nothing_costs_no_rollout_and_no_call(project: Project) -> None:
    summary = train(project, Nothing())
    for epoch, action in ((1, "skip_first_epoch"), (2, "skip_identical")):
        folder = f"run/slow_update/epoch_{epoch:02d}"
        assert project.json(f"{folder}/slow_result.json")["action"] == action
        assert not (project.folder / folder / "comparison_pairs.json").exists()
    rows = project.lines("run/outcomes.jsonl")
    assert not [row for row in rows if row["folder"].startswith(("slow_update", "meta_skill"))]
    assert not {"slow_update", "meta_skill"} & set(summary.token_summary)


def test_no_samples_means_no_comparison(project: Project) -> None:
    train(project, OneRuleAnEpoch(), slow_update_samples=0)
    assert project.json("run/slow_update/epoch_02/slow_result.json")["action"] == "skip_no_samples"


def test_outcomes_of_the_epoch_are_not_asked_again(project: Project) -> None:
    project.write("world.yaml", world(SURE))
    train(project, OneRuleAnEpoch(), "run", "train.num_epochs=3")
    rows = project.lines("run/outcomes.jsonl")
    keys = [(row["skill_hash"], row["id"], row["sample"]) for row in rows]
    assert len(keys) == len(set(keys))
    compared = [row for row in rows if row["folder"].startswith("slow_update/epoch_02/rollout")]
    assert {row["sample"] for row in compared} == {2}
    assert 0 < len(compared) < 2 * 12, "the epoch had attempted some of them"
    assert not [row for row in rows if row["folder"].startswith("meta_skill/")], "it finds the slow update's pairs"


def test_the_meta_skill_makes_its_own_comparison_where_there_is_no_slow_update(project: Project) -> None:
    project.write("world.yaml", world(SURE))
    train(project, OneRuleAnEpoch(), "run", "train.num_epochs=3", use_slow_update=False)
    assert [row for row in project.lines("run/outcomes.jsonl") if row["folder"].startswith("meta_skill/epoch_02/")]
    assert project.json("run/meta_skill/epoch_02/meta_skill_result.json")["action"] == "write_meta_skill"
    assert not (project.folder / "run/slow_update").exists()


@pytest.mark.parametrize("stage", ["slow_update", "meta_skill"])
def test_a_disabled_stage_does_nothing_and_the_summary_says_so(project: Project, stage: str) -> None:
    project.write("world.yaml", world(SURE))
    summary = train(project, OneRuleAnEpoch(), "run", f"hooks.disable=[{stage}]", "train.num_epochs=3")
    assert summary.notes == (f"optimizer.use_{stage} is true, but hooks.disable takes {stage} out; nothing was done.",)
    assert not (project.folder / "run" / stage).exists()
    assert stage not in summary.token_summary


# Over HTTP: what the optimizer is told -------------------------------------------------------------------

FIRST, SECOND = "Answer with the number alone.", "Answer odd lines in words."
ADVICE = "Prefer rules about the form of the answer."


def model(body: Mapping[str, Any]) -> Reply:
    """The target needs one rule for even numbers and two for odd ones; the optimizer learns them one by one."""
    system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
    if body["model"] == "target":
        odd = int(re.findall(r"number is (\d+)", user)[-1]) % 2
        right = FIRST in system and (not odd or SECOND in system)
        return Reply("<answer>42</answer>" if right else "<answer>it is 42</answer>")
    if '"slow_update_content"' in system:
        return Reply('{"reasoning": "", "slow_update_content": "Mind the form."}')
    if '"meta_skill_content"' in system:
        return Reply(json.dumps({"reasoning": "", "meta_skill_content": ADVICE}))
    skill = re.split("## (?:Trajectories|Patches)", user)[0]
    rule = SECOND if FIRST in skill else FIRST
    edits = [] if SECOND in skill else [{"op": "append", "content": f"- {rule}", "support_count": 3}]
    return Reply(json.dumps({"reasoning": "", "edits": edits, "patch": {"reasoning": "", "edits": edits}}))


def over_http(folder: Path, script: Callable[[Mapping[str, Any]], Reply], **sections: Any) -> tuple[Project, Any]:
    """A run of three epochs of one step; returns the project and the optimizer's requests in order."""
    project, number = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": "sk-none"}), 0
    for split, count in (("train", 8), ("val", 6), ("test", 6)):
        items = []
        for _ in range(count):
            number += 1
            question = f"Which number is {number}?"
            items.append({"id": f"{split}-{number}", "question": question, "context": "", "answers": ["42"]})
        project.write(f"data/{split}/items.json", json.dumps(items))
    with ChatServer(script) as server:
        settings = {
            "_base_": "package:skillopt_kernel/default.yaml",
            "train": {"num_epochs": 3, "batch_size": 8, "seed": 1},
            "model": {
                "backend": "openai_compatible",
                "openai_compatible_base_url": server.url,
                "optimizer": "optimizer",
                "target": "target",
            },
            "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": 4},
            **sections,
        }
        project.write("config.yaml", json.dumps(settings))
        project.run("train", "config.yaml", "--out", "run").ok()
        return project, [received.body for received in server.requests if received.body["model"] == "optimizer"]


def kind_of(body: Mapping[str, Any]) -> str:
    system = body["messages"][0]["content"]
    found = re.search(r'"(slow_update|meta_skill)_content"', system)
    return found[1] if found else "step"


def test_whom_the_meta_skill_reaches_and_that_nothing_but_training_tasks_is_shown(tmp_path: Path) -> None:
    project, requests = over_http(tmp_path, model)
    kinds = [kind_of(body) for body in requests]
    assert kinds.count("slow_update") == 1, "in the third epoch nothing changed"
    assert kinds.count("meta_skill") == 1, "none in the first epoch, none in the last"
    written = kinds.index("meta_skill")
    texts = ["\n".join(message["content"] for message in body["messages"]) for body in requests]
    before, after = texts[: written + 1], texts[written + 1 :]
    assert after and all(f"## Advice from earlier epochs\n\n{ADVICE}" in text for text in after)
    assert not any(ADVICE in text for text in before)
    assert SECOND in texts[kinds.index("slow_update")].partition("## Current skill")[2]
    shown = {int(number) for text in texts for number in re.findall(r"number is (\d+)", text)}
    assert shown and shown <= set(range(1, 9)), "training tasks are numbered 1 to 8"
    assert not any(re.search(r"\b(val|test)-\d", text) for text in texts)
    assert project.json("run/summary.json")["test_hard"] == 1.0


def test_a_prompt_of_ones_own_takes_the_place_of_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text('MY PROMPT. Reply with "slow_update_content".', encoding="utf-8")
    project, requests = over_http(tmp_path, model, prompts={"slow_update": "guide.md"})
    (asked,) = (body for body in requests if kind_of(body) == "slow_update")
    assert asked["messages"][0]["content"].startswith("MY PROMPT.")
    listed = project.run("config", "show", "config.yaml", "--prompts").ok().out
    assert "MY PROMPT." in listed and "the prompt meta_skill of the kernel's stage meta_skill" in listed


def test_calls_that_come_to_nothing_are_recorded_and_end_no_run(tmp_path: Path) -> None:
    def chatty(body: Mapping[str, Any]) -> Reply:
        if body["model"] == "target" or kind_of(body) == "step":
            return model(body)
        return Reply("I have some thoughts.")

    project, _ = over_http(tmp_path, chatty)
    result = project.json("run/slow_update/epoch_02/slow_result.json")
    assert result["action"] == "no_content" and result["error"].startswith("unusable_reply: ")
    result = project.json("run/meta_skill/epoch_02/meta_skill_result.json")
    assert result["action"] == "no_content" and result["error"].startswith("unusable_reply: ")
    summary = project.json("run/summary.json")
    assert summary["model_failures"] == {"unusable_reply": 2}
    assert [record["model_failures"] for record in summary["epoch_stats"]] == [{}, {"unusable_reply": 2}, {}]


# Killed at the epoch's end ------------------------------------------------------------------------------


def decided(folder: Path) -> dict[str, Any]:
    """All that must not depend on how often a run was killed."""

    def without_costs(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_costs(item) for name, item in value.items() if name not in COSTS}
        return [without_costs(item) for item in value] if isinstance(value, list) else value

    ends = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/epoch_*/*result.json"))
    files = {name: without_costs(json.loads((folder / name).read_text())) for name in ("history.json", "summary.json")}
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*skill*.md"))}
    return {**files, **texts, **{name: json.loads((folder / name).read_text()) for name in ends}}


REFLECT = """
from skillopt_kernel import Edit, Proposal

RULES = {rules}

def reflect(step):
    return (Proposal("lesson", "failure", items=(Edit("append", "- " + RULES[step.epoch - 1]),)),)
"""


def test_killed_at_each_stage_of_the_epochs_end_it_ends_as_an_unbroken_run(project: Project) -> None:
    project.write("world.yaml", world("{insight: 0.5, harmful: 0.5}"))
    project.write("lab.py", REFLECT.format(rules=list(KINDS.values())))
    optimizer = {"use_slow_update": True, "use_meta_skill": True}
    hooks = {"override": {"reflect": "lab:reflect"}, "path": ["."]}
    mine = project.write("mine.yaml", json.dumps({"_base_": "config.yaml", "optimizer": optimizer, "hooks": hooks}))
    slow = ("model.target_simulated_latency=0.05", "model.optimizer_simulated_latency=0.3")
    changes = ("-o", "train.num_epochs=3", *slow)
    project.run("train", mine, "--out", "unbroken", *changes).ok()
    expected = decided(project.folder / "unbroken")
    assert expected["slow_update/epoch_02/slow_result.json"]["slow_update_content"]
    assert expected["meta_skill/epoch_02/meta_skill_result.json"]["meta_skill_content"]
    run = project.folder / "run"

    def begun(stage: str) -> int:
        events = project.lines("run/events.jsonl")
        names = [(event["stage"], event["epoch"]) for event in events if event["event"] == "stage_started"]
        return names.count((stage, 2))

    candidate = run / "slow_update/epoch_02/candidate_skill.md"
    for stage, shown in (("slow_update", False), ("slow_update", True), ("meta_skill", False)):
        before = begun(stage)
        candidate.unlink(missing_ok=True)
        project.kill_when(
            lambda: begun(stage) > before and (candidate.exists() or not shown),  # noqa: B023 - it is called at once
            "train", mine, "--out", "run", *changes,
        )  # fmt: skip
        assert project.json("run/runtime_state.json")["extra"]["epoch_ended"] == 1
    project.run("train", mine, "--out", "run", *changes).ok()
    assert decided(run) == expected
    rows = [row for row in project.lines("run/outcomes.jsonl") if "hard" in row]
    keys = [(row["skill_hash"], row["id"], row["sample"]) for row in rows]
    assert len(keys) == len(set(keys))
