"""The scheduler `cosine` of SkillOpt: the number of edits falls along half a cosine wave."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-cosine")

plugin = Manifest(
    kind="scheduler",
    name="cosine",
    api=PLUGIN_API,
    summary="edits fall along half a cosine wave from learning_rate to min_learning_rate",
    factory="skillopt_scheduler_cosine.scheduler:make_scheduler",
    settings="skillopt_kernel.scheduling:LearningRateSettings",
    section="optimizer",
)
