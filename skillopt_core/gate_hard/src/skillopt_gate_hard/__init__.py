"""The gate `hard` of SkillOpt: the share of tasks passed decides."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-hard")

plugin = Manifest(
    kind="gate",
    name="hard",
    api=PLUGIN_API,
    summary="the mean hard score decides: the share of tasks passed",
    factory="skillopt_gate_hard.gate:make_gate",
)
