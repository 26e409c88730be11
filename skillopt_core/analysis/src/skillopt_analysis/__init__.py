"""Commands of SkillOpt on data and on runs, and the hook plugin that has the data audited before a run."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-analysis")

audit = Manifest(
    kind="command",
    name="audit",
    api=PLUGIN_API,
    summary="Find shortcuts in the data: what a skill could learn instead of the task",
    factory="skillopt_analysis.command:audit",
)

data_audit = Manifest(
    kind="hook",
    name="data_audit",
    api=PLUGIN_API,
    summary="refuses a run whose data has shortcuts, until they are acknowledged",
    factory="skillopt_analysis.hook:DataAudit",
    settings="skillopt_analysis.settings:DataAuditSettings",
)

model_calls = Manifest(
    kind="command",
    name="calls",
    api=PLUGIN_API,
    summary="What the model calls of a run used, by role and stage",
    factory="skillopt_analysis.calls:calls",
)

training_plan = Manifest(
    kind="command",
    name="plan",
    api=PLUGIN_API,
    summary="What a training will ask, use and take, before anything is spent",
    factory="skillopt_analysis.plan:plan",
)
