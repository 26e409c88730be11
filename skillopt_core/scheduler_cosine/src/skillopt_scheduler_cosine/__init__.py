"""The scheduler `cosine` of SkillOpt: the number of edits falls along half a cosine wave."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-cosine")
