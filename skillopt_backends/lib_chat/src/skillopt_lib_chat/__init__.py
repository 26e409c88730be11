"""What SkillOpt's HTTP chat backends share: the one place that imports `openai`."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-lib-chat")
