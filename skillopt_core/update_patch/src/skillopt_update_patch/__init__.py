"""The update mode `patch` of SkillOpt: small edits, safely applied."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-update-patch")
