"""The SearchQA benchmark for SkillOpt, and the demo."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-env-searchqa")
