"""The microkernel of SkillOpt: the training loop, its records, its hooks and the command `skillopt`."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-kernel")
