"""The scheduler `autonomous` of SkillOpt: the optimizer decides how many edits a step makes."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-autonomous")

plugin = Manifest(
    kind="scheduler",
    name="autonomous",
    api=PLUGIN_API,
    summary="the optimizer is asked, once a step, how many items of the merged update to apply",
    factory="skillopt_scheduler_autonomous.scheduler:make_scheduler",
    section="optimizer",
)
