"""The gate `soft` of SkillOpt: the mean partial credit decides."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-soft")

plugin = Manifest(
    kind="gate",
    name="soft",
    api=PLUGIN_API,
    summary="the mean soft score decides: partial credit counts",
    factory="skillopt_gate_soft.gate:make_gate",
)
