"""What SkillOpt's backends that run a program share: workspace, process, events, isolation."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-lib-agent")
