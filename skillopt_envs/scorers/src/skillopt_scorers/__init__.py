"""Scorers for SkillOpt: how an answer compares with a reference."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-scorers")
