"""The scheduler `constant` of SkillOpt: the same number of edits in every step."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scheduler-constant")
