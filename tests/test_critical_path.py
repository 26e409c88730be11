"""The benchmark of the critical path: its scheduling on examples whose answer is plain, and on a run."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import Project

SCRIPT = Path(__file__).parents[1] / "benchmarks/critical_path.py"


@pytest.fixture(scope="module")
def path() -> Any:
    spec = importlib.util.spec_from_file_location("critical_path", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where attrs looks for it
    spec.loader.exec_module(module)
    return module


def group(path: Any, name: str, seconds: list[float], after: list[str] | None = None, **more: Any) -> Any:
    return path.Group(name, [path.Job(one, "") for one in seconds], after or [], **more)


def test_jobs_share_the_workers_and_wait_for_what_they_need(path: Any) -> None:
    def groups() -> list[Any]:
        return [
            group(path, "rollout", [1.0, 1.0, 1.0, 1.0]),
            group(path, "analyst", [2.0, 3.0], ["rollout"], pool="optimizer"),
            group(path, "gate", [1.0, 1.0, 5.0], ["analyst"], needed=2),
            group(path, "next", [1.0], ["gate"]),
        ]

    assert path.schedule(groups(), math.inf) == 1 + 3 + 1 + 1
    # Two rounds of two; the analysts need no worker; what is not needed keeps one of the two only.
    assert path.schedule(groups(), 2) == 2 + 3 + 1 + 1
    assert path.schedule(groups(), 1) == 4 + 3 + 2 + 5 + 1


def test_what_is_behind_fills_the_places_that_are_free(path: Any) -> None:
    first, behind = group(path, "first", [2.0]), group(path, "behind", [1.0, 1.0], rank=2)
    last = group(path, "last", [1.0, 1.0], ["first"])
    assert path.schedule([behind, first, last], 2) == 3.0
    assert (first.done_at, behind.done_at) == (2.0, 2.0)


def test_every_call_of_a_run_has_its_place_in_the_schedule(path: Any, tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    model = ["-o", "model.simulated_latency=0.02", "-o", "optimizer.use_slow_update=true", "-o", "train.num_epochs=3"]
    project.run("train", "config.yaml", "--out", "run", *model).ok()
    found = path.measure(tmp_path / "run")
    assert 0 < found["chain"] <= found["schedule"] + 1e-9
    (count,) = {found["calls"], sum(1 for group in found["groups"] for _ in group.jobs)}
    assert count > 50
    assert {"rollout", "analyst", "gate", "baseline"} <= set(found["kinds"])


def test_another_folder_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not the folder of a finished run: it has no config.json" in done.stderr
