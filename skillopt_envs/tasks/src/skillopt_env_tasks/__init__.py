"""Your own tasks for SkillOpt: a benchmark without code."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

plugin = Manifest(
    kind="env",
    name="tasks",
    api=PLUGIN_API,
    summary="your own tasks from CSV, JSON, JSON lines or a data set, with a scorer by name",
    factory="skillopt_env_tasks.environment:TasksEnvironment",
    settings="skillopt_env_tasks.settings:TasksSettings",
    section="env",
)

__getattr__ = lazy_version("skillopt-env-tasks")
