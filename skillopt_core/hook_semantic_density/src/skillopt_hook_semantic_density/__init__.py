"""The hook plugin `semantic_density` of SkillOpt: a bonus in the gate score for the share of leading words."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-hook-semantic-density")

plugin = Manifest(
    kind="hook",
    name="semantic_density",
    api=PLUGIN_API,
    summary="adds a weight times the share of leading words in the skill to its gate score",
    factory="skillopt_hook_semantic_density.density:SemanticDensity",
    settings="skillopt_hook_semantic_density.settings:SemanticDensitySettings",
    keys=("evaluation.use_semantic_density",),
)
