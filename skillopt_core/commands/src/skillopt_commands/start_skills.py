"""The skill that a command is told to start from: where it lies, and whether there is one at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillopt_kernel.config.resolved import Config

AGENT_SKILL = "SKILL.md"
"""The file of an Agent Skill, in the folder that is its name."""

BLANK = (
    "the start skill says nothing below its front matter, so that all has to be learnt anew. If that is not meant, "
    "name another file (--skill, env.skill_init)."
)


def skill_file(path: str | Path) -> Path:
    """`path`, or the `SKILL.md` in it where it is the folder of an Agent Skill."""
    inside = Path(path, AGENT_SKILL)
    return inside if inside.expanduser().is_file() else Path(path)


def is_blank(text: str) -> bool:
    """Whether the skill says nothing: no text, or nothing but front matter."""
    from skillopt_kernel.skill import SkillDocument

    return not SkillDocument.parse(text).body.strip()


def warn_of_blank_skill(config: Config) -> None:
    """Tell where the file of `env.skill_init` says nothing; what is wrong with it otherwise, the training tells."""
    from skillopt_kernel.console import error
    from skillopt_kernel.errors import ConfigError
    from skillopt_kernel.loop.start import read_skill

    path = config.env.skill_init
    if path is None or not path.is_file():
        return
    try:
        text = read_skill(path, "")
    except ConfigError:
        return
    if is_blank(text):
        error(f"Warning: {config.place_of('env.skill_init')}: {path}: {BLANK}")
