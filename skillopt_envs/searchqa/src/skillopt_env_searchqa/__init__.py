"""The SearchQA benchmark for SkillOpt, and the demo."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

plugin = Manifest(
    kind="env",
    name="searchqa",
    api=PLUGIN_API,
    summary="trivia clues answered from search snippets, scored as SQuAD and MRQA do",
    factory="skillopt_env_searchqa.environment:SearchQAEnvironment",
    settings="skillopt_env_searchqa.settings:SearchQASettings",
    section="env",
    data="skillopt_env_searchqa.data:data",
)

__getattr__ = lazy_version("skillopt-env-searchqa")
