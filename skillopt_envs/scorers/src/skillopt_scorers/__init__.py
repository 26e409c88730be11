"""Scorers for SkillOpt: how an answer compares with a reference."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

exact = Manifest(
    kind="scorer",
    name="exact",
    api=PLUGIN_API,
    summary="right when the normalised answer equals an accepted one",
    factory="skillopt_scorers.exact_match:ExactScorer",
)
token_f1 = Manifest(
    kind="scorer",
    name="token_f1",
    api=PLUGIN_API,
    summary="exact match as SQuAD and MRQA have it, with token F1 as partial credit",
    factory="skillopt_scorers.token_overlap:TokenF1Scorer",
)

__getattr__ = lazy_version("skillopt-scorers")
