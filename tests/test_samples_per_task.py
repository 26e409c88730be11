"""`train.samples_per_task`: several attempts at each training task, all evidence, each with a number of its own."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

import skillopt_core

THREE = ("train.samples_per_task=3", "model.target_simulated_noise=0.6", "optimizer.use_slow_update=true")
COSTS = {"timing", "tokens", "wall_time_s", "total_wall_time_s", "token_summary", "config"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.make(tmp_path_factory.mktemp("samples"))
    skillopt_core.train(project.folder / "config.yaml", THREE, out=project.folder / "run")
    return project


def rows_of(project: Project, run: str = "run") -> list[dict[str, Any]]:
    return project.lines(f"{run}/outcomes.jsonl")


def test_every_task_of_a_step_is_attempted_so_often_and_all_of_it_counts(project: Project) -> None:
    for record in project.json("run/history.json"):
        rows = project.lines(f"run/steps/step_{record['step']:04d}/rollout/results.jsonl")
        assert (record["rollout_n"], len(rows)) == (18, 18)
        assert record["rollout_hard"] == pytest.approx(sum(row["hard"] for row in rows) / 18, abs=1e-6)
        assert [row["sample"] // 1_000_000 for row in rows] == [0, 1, 2] * 6, "attempts at one task side by side"
        assert {row["sample"] % 1_000_000 for row in rows} == {record["epoch"]}
        digest = project.json(f"run/steps/step_{record['step']:04d}/trajectory_digest.json")
        assert (digest["n_total"], digest["n_fail"]) == (18, sum(row["hard"] == 0 for row in rows))
    verdicts = defaultdict(set)
    for row in rows_of(project):
        if row["sample"]:
            verdicts[row["skill_hash"], row["id"]].add(row["hard"])
    assert any(len(found) == 2 for found in verdicts.values()), "the attempts are attempts of their own"


def test_numbers_and_folders_are_distinct_and_gate_and_test_have_their_own(project: Project) -> None:
    rows = rows_of(project)
    keys = Counter((row["skill_hash"], row["id"], row["sample"]) for row in rows)
    assert set(keys.values()) == {1}
    purposes: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        purposes["rollout" if "/rollout" in row["folder"] else "scored"].add(row["sample"])
    assert purposes == {"rollout": {e + k * 1_000_000 for e in (1, 2) for k in range(3)}, "scored": {0}}
    folders = [row["folder"] for row in rows]
    assert len(set(folders)) == len(folders)
    assert all((project.folder / "run" / folder / "conversation.json").is_file() for folder in folders)
    further = {row["folder"].rpartition("-")[2] for row in rows if row["sample"] > 1_000_000}
    assert further == {"attempt2", "attempt3"}


def test_the_slow_update_finds_the_first_attempts_of_its_epoch(project: Project) -> None:
    compared = [row for row in rows_of(project) if row["folder"].startswith("slow_update/epoch_02/rollout")]
    assert 0 < len(compared) < 2 * 12 and {row["sample"] for row in compared} == {2}


def test_killed_in_the_middle_of_a_rollout_it_ends_as_an_unbroken_run(project: Project) -> None:
    options = [part for text in (*THREE, "model.target_simulated_latency=0.03") for part in ("-o", text)]
    journal = project.folder / "killed/outcomes.jsonl"
    for wanted in (7, 45):
        project.kill_when(
            lambda: journal.exists() and journal.read_bytes().count(b"\n") >= wanted,  # noqa: B023 - called at once
            "train", "config.yaml", "--out", "killed", *options,
        )  # fmt: skip
    project.run("train", "config.yaml", "--out", "killed", *options).ok()
    asked = Counter(
        (row["skill_hash"], row["id"], row["sample"]) for row in rows_of(project, "killed") if "hard" in row
    )
    assert max(asked.values()) == 1

    def decided(run: str) -> list[Any]:
        history = [{k: v for k, v in one.items() if k not in COSTS} for one in project.json(f"{run}/history.json")]
        return [history, (project.folder / run / "best_skill.md").read_text(encoding="utf-8")]

    project.run("train", "config.yaml", "--out", "unbroken", *options).ok()
    assert decided("killed") == decided("unbroken")


def test_analysts_see_which_failures_are_lapses_and_never_a_mixed_group(tmp_path: Path) -> None:
    attempts, told = Counter[str](), list[str]()

    def model(body: Mapping[str, Any]) -> Reply:
        text = body["messages"][-1]["content"]
        if body["model"] == "optimizer":
            told.append(text)
            return Reply('{"reasoning": "", "patch": {"reasoning": "", "edits": []}}')
        number = re.findall(r"number is (\d+)", text)[-1]
        attempts[number] += 1
        return Reply("<answer>42</answer>" if attempts[number] == 2 else "<answer>it is 42</answer>")

    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": "sk-none"})
    for split, numbers in (("train", range(4)), ("val", range(10, 12)), ("test", range(20, 22))):
        items = [
            {"id": f"{split}-{n}", "question": f"Which number is {n}?", "context": "", "answers": ["42"]}
            for n in numbers
        ]
        project.write(f"data/{split}/items.json", json.dumps(items))
    with ChatServer(model) as server:
        settings = {
            "_base_": "package:skillopt_kernel/default.yaml",
            "train": {"num_epochs": 1, "batch_size": 4, "samples_per_task": 3},
            "gradient": {"minibatch_size": 6},
            "model": {
                "backend": "openai_compatible", "openai_compatible_base_url": server.url,
                "optimizer": "optimizer", "target": "target",
            },
            "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": 1},
        }  # fmt: skip
        project.write("config.yaml", json.dumps(settings))
        out = project.run("train", "config.yaml", "--out", "run").ok().out
    assert "1 epoch of 1 step of 4 tasks, 3 attempts at each" in out
    blocks = [re.findall(r"### Trajectory \d+: (\S+)\n(?:.*\n)*?Score: hard (\d)", text) for text in told]
    assert sorted(len(block) for block in blocks) == [2, 4, 6]
    for block in blocks:
        assert len({hard for _, hard in block}) == 1
        ids = [task for task, _ in block]
        assert len(list(itertools.groupby(ids))) == len(set(ids)), "attempts at one task side by side"
    assert sum(text.count("Attempts at this task: 3, of which 1 solved it\n") for text in told) == 12
    patches = [project.json(path) for path in sorted((project.folder / "run/steps/step_0001/patches").glob("*"))]
    assert all(len(set(patch["task_ids"])) == len(patch["task_ids"]) for patch in patches)
