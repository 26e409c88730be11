"""The OfficeQA benchmark for SkillOpt: questions over a corpus of U.S. Treasury Bulletins."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

plugin = Manifest(
    kind="env",
    name="officeqa",
    api=PLUGIN_API,
    summary="questions over a corpus of Treasury Bulletins, answered with search tools, scored as published",
    factory="skillopt_env_officeqa.environment:OfficeQAEnvironment",
    settings="skillopt_env_officeqa.settings:OfficeQASettings",
    section="env",
    data="skillopt_env_officeqa.data:data",
)

__getattr__ = lazy_version("skillopt-env-officeqa")
