"""A project whose target is an agent program: it works on files, and what it leaves is collected and scored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from skillopt_testkit.project import Project

ENTRY_POINTS = """\
[skillopt.envs]
sheets = workshop_plugins:sheets
[skillopt.backends]
workshop = workshop_plugins:workshop
"""


def make_workshop(folder: Path, **changes: Any) -> Project:
    """The project; `changes` replaces sections of `config.yaml`. Its plugins are found as any installed ones."""
    plugins = folder / "plugins"
    paths = os.pathsep.join(map(str, (plugins, Path(__file__).parent)))
    project = Project(folder, {"PYTHONPATH": paths, "SHEETS": str(folder / "sheets")})
    metadata = "Metadata-Version: 2.1\nName: workshop-plugins\nVersion: 1.0\n"
    project.write("plugins/workshop_plugins-1.0.dist-info/METADATA", metadata)
    project.write("plugins/workshop_plugins-1.0.dist-info/entry_points.txt", ENTRY_POINTS)
    for place in ("sheets", "elsewhere"):
        project.write(f"{place}/sheet.csv", "1,2\n3,4\n" * 60)
    sections = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 2, "batch_size": 4},
        "gradient": {"minibatch_size": 2},
        "evaluation": {"use_gate": False},  # so that how much is asked does not depend on what arrives first
        "model": {"backend": "workshop"},
        "env": {"name": "sheets", "workers": 3},
        **changes,
    }
    project.write("config.yaml", json.dumps(sections))
    return project


def jobs_done(project: Project) -> list[tuple[str, ...]]:
    """What the agent was given so far, in order: (stage, prompt, skill)."""
    return [tuple(line) for line in project.lines("jobs.jsonl")]
