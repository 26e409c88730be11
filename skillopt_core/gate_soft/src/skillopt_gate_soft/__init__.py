"""The gate `soft` of SkillOpt: the mean partial credit decides."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-soft")
