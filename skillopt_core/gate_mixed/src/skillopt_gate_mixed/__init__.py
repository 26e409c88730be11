"""The gate `mixed` of SkillOpt: a weighted mix of passed tasks and partial credit decides."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-mixed")

plugin = Manifest(
    kind="gate",
    name="mixed",
    api=PLUGIN_API,
    summary="a weighted mix of the mean hard and the mean soft score decides",
    factory="skillopt_gate_mixed.gate:make_gate",
    settings="skillopt_gate_mixed.settings:MixedGateSettings",
    section="evaluation",
)
