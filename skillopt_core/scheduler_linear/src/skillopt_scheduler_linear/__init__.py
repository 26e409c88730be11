"""The scheduler `linear` of SkillOpt: the number of edits falls along a line."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-linear")
