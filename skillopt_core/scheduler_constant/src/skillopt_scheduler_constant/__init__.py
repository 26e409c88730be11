"""The scheduler `constant` of SkillOpt: the same number of edits in every step."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-constant")

plugin = Manifest(
    kind="scheduler",
    name="constant",
    api=PLUGIN_API,
    summary="every step may make learning_rate edits",
    factory="skillopt_scheduler_constant.scheduler:make_scheduler",
    settings="skillopt_kernel.scheduling:LearningRateSettings",
    section="optimizer",
)
