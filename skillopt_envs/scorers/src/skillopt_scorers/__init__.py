"""Scorers for SkillOpt: how an answer compares with a reference."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version


def _scorer(name: str, summary: str, factory: str, settings: str = "") -> Manifest:
    settings = settings and f"skillopt_scorers.settings:{settings}"
    return Manifest("scorer", name, PLUGIN_API, summary, f"skillopt_scorers.{factory}", settings)


exact = _scorer("exact", "right when the answer equals an accepted one", "exact_match:ExactScorer", "ExactSettings")
token_f1 = _scorer(
    "token_f1",
    "exact match as SQuAD and MRQA have it, with token F1 as partial credit",
    "token_overlap:TokenF1Scorer",
)
anls = _scorer(
    "anls",
    "similarity of the spelling, as document question answering is scored",
    "spelling:AnlsScorer",
    "AnlsSettings",
)
numeric = _scorer(
    "numeric", "a number within a tolerance, with units that convert", "numbers_near:NumericScorer", "NumericSettings"
)

__getattr__ = lazy_version("skillopt-scorers")
