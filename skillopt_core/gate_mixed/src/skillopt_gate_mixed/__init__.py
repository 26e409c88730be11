"""The gate `mixed` of SkillOpt: a weighted mix of passed tasks and partial credit decides."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-mixed")
