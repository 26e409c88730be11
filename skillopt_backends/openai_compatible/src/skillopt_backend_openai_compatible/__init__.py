"""SkillOpt on any endpoint that speaks Chat Completions."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-openai-compatible")
