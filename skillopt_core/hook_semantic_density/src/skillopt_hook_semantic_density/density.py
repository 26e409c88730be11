"""The share of leading words in a skill's text, and the bonus in the gate score that is made of it."""

from __future__ import annotations

from collections.abc import Collection

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.skill import SkillDocument

from skillopt_hook_semantic_density.settings import WORD, SemanticDensitySettings, listed


def density(skill: str, leading: Collection[str]) -> float:
    """Leading words divided by all words of the text outside protected regions, 0..1; 0 without any word.

    leading: in lower case. A word is a run of letters a to z and digits, in any case. Front matter counts.
    """
    words = WORD.findall(unprotected(skill).lower())
    return sum(word in leading for word in words) / len(words) if words else 0.0


def unprotected(skill: str) -> str:
    """The text without protected regions; of a marker that has no partner only the marker is taken out."""
    while regions := SkillDocument.parse(skill).regions:  # taking one out may join the parts of another marker
        kept, end = [], 0
        for region in regions:
            kept.append(skill[end : region.span[0]])
            end = max(end, region.span[1])
        skill = "".join((*kept, skill[end:]))
    return skill


class SemanticDensity:
    """The hook plugin: `semantic_density_weight * density(skill)` for each text that a gate compares."""

    def __init__(self, settings: SemanticDensitySettings, context: DriverContext) -> None:
        self._weight = settings.semantic_density_weight
        self._leading = frozenset(listed(settings.leading_words))

    @hookimpl
    def skillopt_score_bonus(self, skill: str) -> float:
        return self._weight * density(skill, self._leading)
