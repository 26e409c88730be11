"""O-S2 in whole runs: explicit zeros, and a held-out score that is recorded and never read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import KINDS, Project, question

COSTS = ("timing", "tokens", "wall_time_s")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Twenty tasks in one file, to be split by a ratio."""
    project = Project.make(tmp_path)
    items = [question(list(KINDS)[number % 4], number) for number in range(20)]
    project.write("all.json", json.dumps(items))
    world = (tmp_path / "world.yaml").read_text("utf-8")
    project.write("world.yaml", world.replace("data/*/items.json", "all.json"))
    return project


def ratio(text: str, **more: Any) -> list[str]:
    values = {"env.split_mode": "ratio", "env.data_path": "all.json", "env.split_ratio": text, **more}
    return ["-o", *(f"{key}={value}" for key, value in values.items())]


def sizes(project: Project, run: str) -> Any:
    return project.json(f"{run}/summary.json")["splits"]


def ids(project: Project, run: str, split: str) -> list[str]:
    (folder,) = (project.folder / run / "_generated_splits").iterdir()
    return [item["id"] for item in project.json(folder / split / "items.json")]


def test_o_s2_twenty_tasks_are_split_alike_in_every_run(project: Project) -> None:
    for number, text in enumerate(("2:1:1", "0.5:0.25:0.25")):
        project.run("train", "config.yaml", "-q", "--out", f"run{number}", *ratio(text, **{"train.seed": number})).ok()
        assert sizes(project, f"run{number}") == {"train": 10, "selection": 5, "test": 5}
    for split in ("train", "val", "test"):
        assert ids(project, "run0", split) == ids(project, "run1", split)


def test_o_s2_a_split_without_test_tasks_trains_and_says_so(project: Project) -> None:
    done = project.run("train", "config.yaml", "--out", "run", *ratio("2:1:0")).ok()
    assert sizes(project, "run") == {"train": 13, "selection": 7, "test": 0}
    assert "Note: the split has no test tasks" in done.out
    summary = project.json("run/summary.json")
    assert (summary["test_hard"], summary["baseline_test_hard"], summary["test_n"]) == (None, None, 0)
    assert summary["best_selection_hard"] is not None


def test_o_s2_no_selection_tasks_are_refused_unless_nothing_gates(project: Project) -> None:
    refused = project.run("train", "config.yaml", "--out", "run", *ratio("3:0:1"))
    refused.refused("the selection split of the data is empty", "evaluation.use_gate")
    assert not (project.folder / "run").exists()
    ungated = ratio("3:0:1", **{"evaluation.use_gate": "false"})
    done = project.run("train", "config.yaml", "--out", "run", *ungated).ok()
    assert sizes(project, "run") == {"train": 15, "selection": 0, "test": 5}
    assert "Note: the split has no selection tasks: nothing chose between the skills" in done.out
    summary, history = project.json("run/summary.json"), project.json("run/history.json")
    taken = [step["step"] for step in history if step["action"] == "force_accept"]
    assert taken and summary["best_step"] == taken[-1]
    assert summary["best_selection_hard"] is None and summary["test_hard"] == summary["final_test_hard"]
    last = (project.folder / "run" / "skills" / f"skill_v{len(history):04d}.md").read_bytes()
    assert (project.folder / "run" / "best_skill.md").read_bytes() == last


def test_a_ratio_that_is_none_is_refused(project: Project) -> None:
    project.run("train", "config.yaml", *ratio("0.5:0.25")).refused("these shares add up to 0.75")
    project.run("train", "config.yaml", *ratio("0:1:1")).refused("env.split_ratio is '0:1:1', which is no ratio")


def test_o_s2_the_held_out_score_is_recorded_and_decides_nothing(tmp_path: Path) -> None:
    """Two runs that differ in nothing but the test tasks make the same skills by the same decisions."""
    found = []
    for name, wrong in (("plain", False), ("other", True)):
        project = Project.make(tmp_path / name)
        shutil.copytree(project.folder / "data", project.folder / "known")  # what the target knows is the same
        world = (project.folder / "world.yaml").read_text("utf-8")
        project.write("world.yaml", world.replace("data/*/items.json", "known/*/items.json"))
        if wrong:
            items = [item | {"answers": ["no target says this"]} for item in project.json("data/test/items.json")]
            project.write("data/test/items.json", json.dumps(items[:5]))
        project.run("train", "config.yaml", "--out", "run").ok()
        skills = [path.read_bytes() for path in sorted((project.folder / "run/skills").iterdir())]
        steps = [{key: step[key] for key in step if key not in COSTS} for step in project.json("run/history.json")]
        best = (project.folder / "run/best_skill.md").read_bytes()
        found.append((project.json("run/summary.json"), skills, steps, best))
    (plain, *of_plain), (other, *of_other) = found
    assert (plain["test_n"], other["test_n"]) == (8, 5)
    assert plain["test_hard"] > 0 == other["test_hard"], "the held-out scores are recorded"
    assert of_plain == of_other
    chosen = ("best_step", "best_origin", "best_selection_hard", "best_gate_score", "final_selection_hard")
    assert [plain[name] for name in chosen] == [other[name] for name in chosen]
