"""Conformance suites and fixtures for authors of SkillOpt plugins."""

from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-testkit")
