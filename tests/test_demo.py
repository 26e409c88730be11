"""The demo as people run it: it climbs, it rejects, it ends in seconds, and it always ends the same."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel import train

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "skillopt_envs/searchqa/src/skillopt_env_searchqa/demo"
WITHOUT_MEASUREMENTS = ("timing", "tokens", "wall_time_s")


def decisions(folder: Path) -> list[dict[str, Any]]:
    """The run's history without what is measured: times, and tokens of evaluations that were stopped early."""
    steps = json.loads((folder / "history.json").read_text(encoding="utf-8"))
    return [{key: value for key, value in step.items() if key not in WITHOUT_MEASUREMENTS} for step in steps]


def test_the_demo_climbs_and_rejects(tmp_path: Path) -> None:
    summary = train("demo", out=tmp_path / "run")
    assert summary.baseline_test_hard is not None and summary.test_hard is not None
    assert summary.baseline_test_hard < 0.35
    assert summary.test_hard >= 0.85
    assert summary.total_accepts >= 3 and summary.total_rejects >= 3
    assert summary.test_soft is not None and summary.test_soft > summary.test_hard
    assert not summary.notes
    guidance = json.loads((tmp_path / "run/slow_update/epoch_02/slow_result.json").read_text(encoding="utf-8"))
    assert guidance["action"] in ("accept", "accept_new_best", "reject") and guidance["slow_update_content"]
    advice = json.loads((tmp_path / "run/meta_skill/epoch_02/meta_skill_result.json").read_text(encoding="utf-8"))
    assert "Do not propose again" in advice["meta_skill_content"]
    skill = (tmp_path / "run" / "best_skill.md").read_text(encoding="utf-8")
    assert skill.count("asked for, ") >= 4, "the rules of most kinds are in it"


def test_neither_threads_nor_an_earlier_run_change_the_demo(tmp_path: Path) -> None:
    for name, workers in (("a", 1), ("b", 16)):
        overrides = [f"env.workers={workers}", f"gradient.analyst_workers={workers}", "train.num_epochs=2"]
        train("demo", overrides, out=tmp_path / name)
    assert decisions(tmp_path / "a") == decisions(tmp_path / "b")
    first, second = ((tmp_path / name / "best_skill.md").read_bytes() for name in "ab")
    assert first == second


@pytest.mark.parametrize("fault", ["malformed_replies", "empty_replies", "refusals"])
def test_the_demo_survives_bad_replies(tmp_path: Path, fault: str) -> None:
    overrides = [f"model.simulated_{fault}=0.3", "train.num_epochs=1", "evaluation.eval_test=false"]
    summary = train("demo", overrides, out=tmp_path / "run")
    assert summary.status == "finished"
    assert summary.total_steps == 4


def test_the_questions_are_those_that_the_tool_writes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_demo", ROOT / "skillopt_backends/simulated/tools/make_demo.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.make(tmp_path)
    for split, count in (("train", 40), ("val", 24), ("test", 40)):
        written = (tmp_path / split / "items.json").read_bytes()
        assert written == (DEMO / split / "items.json").read_bytes()
        assert len(json.loads(written)) == count
