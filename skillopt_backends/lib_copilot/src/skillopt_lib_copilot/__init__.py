"""What SkillOpt's two backends on the Copilot CLI share: its command line, its events, its errors, its usage."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-lib-copilot")
