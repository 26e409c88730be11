"""A benchmark whose scorer the configuration chooses, as `env.scorer` writes it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from attrs import frozen
from skillopt_kernel import PLUGIN_API, Attempt, DriverContext, Judge, Manifest, Message, Score, Splits, Target, Task
from skillopt_kernel.config.fields import option
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_testkit.project import Project

scored = Manifest(
    kind="env", name="scored", api=PLUGIN_API, summary="questions; the scorer is chosen",
    factory="scored_plugins:ScoredEnvironment", settings="scored_plugins:ScoredSettings",
)  # fmt: skip


@frozen
class ScoredSettings:
    scorer: ScorerChoice = option(ScorerChoice("exact"), "how an answer is compared with the reference")  # noqa: RUF009


class ScoredEnvironment:
    targets = frozenset({"chat"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: ScoredSettings, context: DriverContext) -> None:
        self._folder = context.common.split_dir
        self._scorer = settings.scorer.make(context)

    def splits(self) -> Splits:
        def tasks(part: str) -> tuple[Task, ...]:
            rows = json.loads((self._folder / f"{part}.json").read_text("utf-8"))
            return tuple(
                Task(row["id"], inputs={"question": row["question"]}, reference=row["reference"]) for row in rows
            )

        return Splits(*map(tasks, ("train", "val", "test")))

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        return Attempt(target.chat([Message("system", skill), Message("user", task.inputs["question"])]).text)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        return self._scorer.score(attempt.output, task.reference, task, judge)


def make_scored(folder: Path, reference: Any, url: str = "http://127.0.0.1:9", **env: Any) -> Project:
    """A project of four tasks a split with this reference; three models at `url`, named as their roles."""
    plugins = folder / "plugins"
    paths = os.pathsep.join(map(str, (plugins, Path(__file__).parent)))
    project = Project(folder, {"PYTHONPATH": paths, "OPENAI_COMPATIBLE_API_KEY": "key"})
    project.write(
        "plugins/scored_plugins-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: scored\nVersion: 1.0\n"
    )
    project.write(
        "plugins/scored_plugins-1.0.dist-info/entry_points.txt", "[skillopt.envs]\nscored = scored_plugins:scored\n"
    )
    for part in ("train", "val", "test"):
        rows = [{"id": f"{part}-{n}", "question": f"{part} {n}?", "reference": reference} for n in range(4)]
        project.write(f"data/{part}.json", json.dumps(rows))
    sections = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 1, "batch_size": 2},
        "gradient": {"minibatch_size": 2},
        "optimizer": {"use_slow_update": False, "use_meta_skill": False, "lr_scheduler": "constant"},
        "evaluation": {"eval_test": False, "missing_retries": 0, "gate_metric": "soft"},
        "model": {
            "backend": "openai_compatible", "openai_compatible_base_url": url, "optimizer": "optimizer",
            "target": "target", "judge": "judge",
        },
        "env": {"name": "scored", "split_mode": "split_dir", "split_dir": "data", "skill_init": "skill.md", **env},
    }  # fmt: skip
    project.write("skill.md", "# Reporting\n\n- Be brief.\n")
    project.write("config.yaml", json.dumps(sections, indent=1))
    return project
