"""The trained skill as a file of an agent's skills folder: the form that Codex, Claude Code and Copilot all read."""

from __future__ import annotations

import json
from pathlib import Path

from skillopt_kernel.skill import SkillDocument

NAME = "trained-skill"
DESCRIPTION = "How to do the task at hand. Read it before anything else and follow it."


def place_skill(workspace: Path, skills: str, skill: str) -> str:
    """Write `skills`/trained-skill/SKILL.md below the workspace, and return its folder's relative name.

    skills  the folder that the program looks into, such as ".agents/skills" or ".claude/skills"
    Of a blank skill nothing is written, and "" is returned.
    """
    document = SkillDocument.parse(skill)
    if not document.body.strip():
        return ""
    folder = f"{skills}/{NAME}"
    path = workspace / folder / "SKILL.md"
    path.parent.mkdir(parents=True)
    head = f"---\nname: {NAME}\ndescription: {json.dumps(_description(document), ensure_ascii=False)}\n---"
    path.write_bytes(f"{head}\n\n{document.body.strip()}\n".encode())
    return folder


def _description(document: SkillDocument) -> str:
    """The skill's own description, which programs show before they read the rest; else one that fits any."""
    import yaml

    lines = document.front_matter.strip().splitlines()[1:-1]
    try:
        told = yaml.safe_load("\n".join(lines))
    except yaml.YAMLError:
        told = None
    found = told.get("description") if isinstance(told, dict) else None
    return " ".join(found.split()) if isinstance(found, str) and found.strip() else DESCRIPTION
