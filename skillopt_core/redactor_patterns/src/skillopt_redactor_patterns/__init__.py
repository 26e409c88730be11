"""The redactor plugin `patterns` of SkillOpt: what looks like a credential."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-redactor-patterns")

plugin = Manifest(
    kind="redactor",
    name="patterns",
    api=PLUGIN_API,
    summary="finds what looks like a credential: headers, named values, keys of known providers",
    factory="skillopt_redactor_patterns.finding:SecretPatterns",
)
