"""Hooks in whole runs: what a plugin keeps, what happens when one fails, what one can change."""

import json
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import Project

import skillopt_core
from skillopt_core import Edit, HookError, Proposal, RefuseRun, SlowUpdate, hookimpl

COUNTER = """
from skillopt_kernel import hookimpl

class Counter:
    @hookimpl
    def skillopt_edit_budget(self, run, step, update):
        state = run.state["counter"]
        if update is None:
            state["steps"] = state.get("steps", 0) + 1
        if step.number == 2 and FAIL:
            raise ValueError("the moon is full")
        return None
"""


def config(project: Project, **changes: Any) -> Path:
    return project.write("mine.yaml", json.dumps({"_base_": "config.yaml", **changes}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def test_a_hook_that_raises_ends_the_run_with_its_name_and_its_state_survives(project: Project) -> None:
    project.write("lab.py", COUNTER.replace("FAIL", "True"))
    mine = config(project, hooks={"plugins": ["lab:Counter"], "path": ["."]})
    done = project.run("train", mine.name, "--out", "run").refused(
        "lab:Counter", "skillopt_edit_budget", "the moon is full"
    )
    assert "saved" in done.err
    state = project.json("run/runtime_state.json")
    assert state["last_completed_step"] == 1
    assert state["extra"]["plugins"]["counter"] == {"steps": 1}
    project.write("lab.py", COUNTER.replace("FAIL", "False"))
    project.run("train", mine.name, "--out", "run").ok()
    state = project.json("run/runtime_state.json")
    assert state["extra"]["plugins"]["counter"]["steps"] == state["last_completed_step"]


def test_a_plugin_that_keeps_too_much_is_refused_by_name(project: Project) -> None:
    project.write(
        "lab.py",
        "from skillopt_kernel import hookimpl\n\n@hookimpl\ndef skillopt_edit_budget(run):\n"
        "    run.state['hoarder']['all'] = 'x' * 70_000\n",
    )
    mine = config(project, hooks={"plugins": ["lab"], "path": ["."]})
    if project.run("hooks", "explain", mine.name).code != 0:
        mine = config(project, hooks={"override": {"edit_budget": "lab:skillopt_edit_budget"}, "path": ["."]})
    project.run("train", mine.name, "--out", "run").refused("hoarder", "70,0")


class Lesson:
    """Proposes one rule in every step, whatever was seen."""

    @hookimpl
    def skillopt_reflect(self, run: Any, step: Any, outcomes: Any, skill: str) -> tuple[Proposal, ...]:
        assert {outcome.task_id for outcome in outcomes} <= {task.id for task in run.train}
        return (Proposal("lesson", "failure", items=(Edit("append", f"- Lesson {step.number}."),)),)


def test_a_stage_answered_by_a_plugin_asks_no_analyst(project: Project) -> None:
    summary = skillopt_core.train(
        project.folder / "config.yaml", out=project.folder / "run", plugins=[("lesson", Lesson())]
    )
    assert "analyst" not in summary.token_summary
    candidate = (project.folder / "run" / "steps" / "step_0001" / "candidate_skill.md").read_text()
    assert candidate.rstrip().endswith("- Lesson 1.")


def test_a_run_can_be_refused_or_changed_before_anything_is_spent(project: Project) -> None:
    class Refuser:
        @hookimpl
        def skillopt_configure(self, run: Any) -> None:
            raise RefuseRun(f"{run.settings.train.num_epochs} epochs are too many")

    class Changer:
        @hookimpl
        def skillopt_configure(self, run: Any) -> dict[str, Any]:
            return {"train.num_epochs": 1}

    with pytest.raises(RefuseRun, match="too many"):
        skillopt_core.train(project.folder / "config.yaml", out=project.folder / "a", plugins=[("refuser", Refuser())])
    assert not (project.folder / "a").exists()
    summary = skillopt_core.train(
        project.folder / "config.yaml", out=project.folder / "b", plugins=[("changer", Changer())]
    )
    assert {record["epoch"] for record in summary.epoch_stats} == {1}


@pytest.mark.parametrize("gated", [True, False])
def test_guidance_of_a_slow_update_plugin_is_gated_or_forced_and_then_scored(project: Project, gated: bool) -> None:
    class Guide:
        @hookimpl
        def skillopt_slow_update(self, epoch: Any) -> SlowUpdate:
            return SlowUpdate(content="Read the clue twice.")

    settings = {"optimizer": {"use_slow_update": True, "slow_update_gate_with_selection": gated}}
    mine = config(project, **settings)
    summary = skillopt_core.train(mine, out=project.folder / "run", plugins=[("guide", Guide())])
    result = project.json("run/slow_update/epoch_01/slow_result.json")
    assert result["action"] == ("reject" if gated else "force_accept")  # words that change nothing do not pass the gate
    assert "Read the clue twice." in (project.folder / "run" / "slow_update/epoch_01/candidate_skill.md").read_text()
    current = skillopt_core.load_config(mine)
    assert current.optimizer.slow_update_gate_with_selection is gated
    assert summary.final_gate_score is not None
    state = project.json("run/runtime_state.json")
    text = (project.folder / "run" / state["current_skill_path"]).read_text()
    assert ("Read the clue twice." in text) is not gated


def test_an_observer_that_fails_is_reported_and_stops_nothing_unless_strict(project: Project) -> None:
    class Broken:
        @hookimpl
        def skillopt_step_finished(self, event: Any) -> None:
            raise OSError("tracker is down")

    skillopt_core.train(project.folder / "config.yaml", out=project.folder / "a", plugins=[("tracker", Broken())])
    strict = config(project, hooks={"strict": True})
    with pytest.raises(HookError, match="tracker"):
        skillopt_core.train(strict, out=project.folder / "b", plugins=[("tracker", Broken())])


def test_events_reach_an_observer_in_order_and_as_they_are_written(project: Project) -> None:
    seen: list[tuple[int, str]] = []

    class Watcher:
        @hookimpl
        def skillopt_attempt_finished(self, event: Any) -> None:
            seen.append((event.seq, event.data["task"]))

    skillopt_core.train(project.folder / "config.yaml", out=project.folder / "run", plugins=[("watcher", Watcher())])
    written = [(e["seq"], e["task"]) for e in project.lines("run/events.jsonl") if e["event"] == "attempt_finished"]
    assert seen == written
    assert seen
