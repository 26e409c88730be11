"""SkillOpt as people install it: the kernel and the default plugins."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-core")
