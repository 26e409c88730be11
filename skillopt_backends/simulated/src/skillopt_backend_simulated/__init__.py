"""A simulated model for SkillOpt: both roles, deterministic, without a network."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-simulated")
