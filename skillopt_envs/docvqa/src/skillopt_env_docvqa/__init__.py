"""The DocVQA benchmark for SkillOpt: questions about scanned pages."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

plugin = Manifest(
    kind="env",
    name="docvqa",
    api=PLUGIN_API,
    summary="questions about scanned pages, answered in the page's words, scored by ANLS",
    factory="skillopt_env_docvqa.environment:DocVQAEnvironment",
    settings="skillopt_env_docvqa.settings:DocVQASettings",
    section="env",
    data="skillopt_env_docvqa.data:data",
)

__getattr__ = lazy_version("skillopt-env-docvqa")
