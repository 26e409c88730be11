"""A deterministic world over HTTP for tests of whole runs: four kinds of questions, each answered by a rule of its own.

The target is right where the skill has the rule of the question's kind. An analyst proposes the rule of the first
kind that its trajectories are about and the skill lacks, and where it lacks none, one that spoils every answer. So a
run learns, and then proposes what must be rejected; the same requests always get the same replies. Questions at a line
that ends in 0 are beyond the target.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

KEY = "sk-very-secret-0123456789"
KINDS = ("colour", "count", "place", "person")
RULES = {kind: f"Of a {kind} name only the plain word." for kind in KINDS}
SPOILER = "Explain each answer at great length."


def answer(body: Mapping[str, Any]) -> str:
    """What either model says."""
    system, user = (body["messages"][place]["content"] for place in (0, -1))
    if body["model"] == "target":
        kind = next(kind for kind in KINDS if f"[{kind}]" in user)
        right = RULES[kind] in system and SPOILER not in system and "0?" not in user
        return "<answer>42</answer>" if right else "<answer>it is 42, I think</answer>"
    if "selected_indices" in system:
        return '{"reasoning": "", "selected_indices": [0]}'
    asked = "".join(message["content"] for message in body["messages"])
    proposed = [rule for rule in (*RULES.values(), SPOILER) if f'"- {rule}"' in user]  # what a merge is shown
    lacking = [rule for kind, rule in RULES.items() if f"[{kind}]" in asked and rule not in asked]
    content = (proposed or lacking or [SPOILER])[0]
    edits = [{"op": "append", "content": f"- {content}", "support_count": 3, "source_type": "failure"}]
    patch = {"reasoning": "", "edits": edits}
    return json.dumps({"batch_size": 3, "failure_summary": [], "success_patterns": [], **patch, "patch": patch})


def make_project(folder: Path, *, train: int = 8, selection: int = 8, test: int = 4) -> Project:
    """The data: so many questions in each split, of the kinds in turn."""
    project, number = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": KEY}), 0
    for split, count in (("train", train), ("val", selection), ("test", test)):
        items = []
        for _ in range(count):
            kind = KINDS[number % len(KINDS)]
            number += 1
            items.append({"id": f"t{number}", "question": f"[{kind}] Which is it at line {number}?", "context": "",
                          "answers": ["42"], "task_type": kind})  # fmt: skip
        project.write(f"data/{split}/items.json", json.dumps(items))
    project.write("skill.md", "# Answering\n\n- Be brief.\n")
    return project


def configure(project: Project, server: ChatServer, **changes: Mapping[str, Any]) -> str:
    """Write `config.yaml` for a server, with some sections changed, and return its name."""
    sections: dict[str, Any] = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 1, "batch_size": 4},
        "optimizer": {"use_slow_update": False, "use_meta_skill": False},
        "evaluation": {"eval_test": False},
        "model": {
            "backend": "openai_compatible",
            "openai_compatible_base_url": server.url,
            "optimizer": "optimizer",
            "target": "target",
        },
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": 4,
                "skill_init": "skill.md"},
    }  # fmt: skip
    for name, change in changes.items():
        sections[name] = {**sections.get(name, {}), **change}
    return project.write("config.yaml", json.dumps(sections)).name
