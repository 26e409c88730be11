"""What SkillOpt's environments share: answer tags, text normalisation, data files."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-lib-env")
