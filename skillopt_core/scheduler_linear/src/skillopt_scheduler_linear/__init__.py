"""The scheduler `linear` of SkillOpt: the number of edits falls along a line."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-linear")

plugin = Manifest(
    kind="scheduler",
    name="linear",
    api=PLUGIN_API,
    summary="edits fall in a straight line from learning_rate to min_learning_rate",
    factory="skillopt_scheduler_linear.scheduler:make_scheduler",
    settings="skillopt_kernel.scheduling:LearningRateSettings",
    section="optimizer",
)
