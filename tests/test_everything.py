"""A run of four epochs with every mechanism on (`features/everything`): each leaves its trace."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import probe_plugins
import pytest
from attrs import define, field
from skillopt_kernel import train
from skillopt_kernel.skill import region
from skillopt_testkit.project import Project
from small_worlds import two_rules_a_kind

LAPSES = 0.5

# The target forgets rules, and the optimizer brings useless ones.
OPTIMIZER = "{insight: 1.0, harmful: 0.0, distractors: 0.6, duplicates: 0.5, over_budget: 0.0, memory: 0.5}"
WORLD = two_rules_a_kind(OPTIMIZER, f"target: {{lapses: {LAPSES}}}")


@define
class Ran:
    """The finished run, and what its optimizer was asked, by stage."""

    folder: Path
    asked: dict[str, list[str]] = field(factory=lambda: defaultdict(list))

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def all(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(pattern))

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.json("history.json")
        return steps


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("everything")
    project = Project.make(folder, train=16, selection=12, test=8)
    project.write("world.yaml", WORLD)
    settings = {
        "_base_": ["config.yaml", "features/everything"],
        "train": {"batch_size": 4, "seed": 3},
        "gradient": {"minibatch_size": 2, "merge_batch_size": 2},
        "optimizer": {"learning_rate": 2, "min_learning_rate": 1, "slow_update_samples": 12},
        "model": {
            "optimizer_backend": "recorded", "target_backend": "recorded", "recorded_world": str(folder / "world.yaml"),
            "recorded_folder": str(folder),
        },
    }  # fmt: skip
    path = project.write("mine.yaml", json.dumps(settings))
    with pytest.MonkeyPatch.context() as patch:
        probe_plugins.install(folder / "plugins", patch)
        train(path, out=folder / "run")
    made = Ran(folder / "run")
    for line in project.lines("requests.jsonl"):
        if line["role"] == "optimizer":
            made.asked[line["stage"]].append("\n".join(message["content"] for message in line["messages"]))
    return made


def test_the_skill_climbs_and_the_summary_has_every_test(ran: Ran) -> None:
    summary = ran.json("summary.json")
    assert summary["status"] == "finished" and not summary["notes"]
    assert summary["test_hard"] > summary["baseline_test_hard"] + 0.3
    assert summary["best_selection_hard"] > summary["baseline_selection_hard"]
    assert [len(ran.all(f"{name}/results.jsonl")) for name in ("test_eval_baseline", "test_eval", "test_eval_final")]
    assert (len(summary["epoch_stats"]), summary["total_steps"]) == (4, 8)
    assert summary["total_accepts"] > 0 and summary["total_rejects"] > 0


def test_a_step_takes_two_batches_and_two_samples_of_each_task(ran: Ran) -> None:
    for step in ran.steps:
        assert len(step["accumulation_batches"]) == 2
        assert step["rollout_n"] == 2 * 2 * 4
    rows = [json.loads(line) for line in (ran.folder / "outcomes.jsonl").read_text("utf-8").splitlines()]
    samples = defaultdict(set)
    for row in rows:
        if row["folder"].startswith("steps/step_0001/batch_0/rollout"):
            samples[row["id"]].add(row["sample"])
    assert [len(found) for found in samples.values()] == [2] * 4


def test_failures_and_successes_are_read_merged_and_ranked(ran: Ran) -> None:
    assert ran.all("steps/*/*/patches/minibatch_fail_*.json") and ran.all("steps/*/*/patches/minibatch_succ_*.json")
    assert ran.asked["merge"] and ran.asked["ranking"]
    assert any(ran.json(f"steps/step_{n:04d}/ranked_edits.json").get("over_budget") for n in range(1, 3))
    budgets = [step["planned_edit_budget"] for step in ran.steps]
    assert budgets == sorted(budgets, reverse=True) and (budgets[0], budgets[-1]) == (2, 1), "the cosine falls"


def test_what_was_tried_is_told_beyond_its_epoch(ran: Ran) -> None:
    tried = [text.partition("## What was tried before")[2].partition("\n## ")[0] for text in ran.asked["analyst"]]
    assert any("These edits together did not help" in text for text in tried)
    assert tried[-1].count("### Step ") >= 5, "two steps make an epoch"


def test_guidance_passed_the_gate_and_advice_reached_the_optimizer(ran: Ran) -> None:
    results = [ran.json(f"slow_update/epoch_0{epoch}/slow_result.json") for epoch in range(1, 5)]
    assert results[0]["action"] == "skip_first_epoch"
    accepted = [number for number, result in enumerate(results, 1) if result["action"] == "accept_new_best"]
    assert accepted, [result["action"] for result in results]
    guided = (ran.folder / f"slow_update/epoch_0{accepted[0]}/skill.md").read_text(encoding="utf-8")
    assert region(guided, "slow_update") in (ran.folder / "best_skill.md").read_text(encoding="utf-8")
    advice = [ran.json(path.relative_to(ran.folder).as_posix()) for path in ran.all("meta_skill/*/*result.json")]
    assert advice and {one["action"] for one in advice} == {"write_meta_skill"}
    assert not ran.all("meta_skill/epoch_04/*"), "none in the last epoch"
    told = f"## Advice from earlier epochs\n\n{advice[0]['meta_skill_content']}"
    for stage in ("analyst", "merge"):
        assert any(told in text for text in ran.asked[stage]), stage


def test_lapses_became_notes_in_the_appendix(ran: Ran) -> None:
    assert all("appendix_notes" in text for text in ran.asked["analyst"])
    added = [step["n_appendix_notes_added"] for step in ran.steps]
    assert sum(added) > 0
    best = (ran.folder / "best_skill.md").read_text(encoding="utf-8")
    assert region(best, "appendix")
