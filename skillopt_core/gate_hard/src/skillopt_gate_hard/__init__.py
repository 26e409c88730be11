"""The gate `hard` of SkillOpt: the share of tasks passed decides."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-gate-hard")
