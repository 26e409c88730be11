"""The hook plugin `skill_aware` of SkillOpt: reminders of what a skill says already, in an appendix of it."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-hook-skill-aware")

plugin = Manifest(
    kind="hook",
    name="skill_aware",
    api=PLUGIN_API,
    summary="tells defects of the skill from lapses of execution, and keeps reminders in its appendix",
    factory="skillopt_hook_skill_aware.reflection:SkillAware",
    settings="skillopt_hook_skill_aware.settings:SkillAwareSettings",
    keys=("optimizer.use_skill_aware_reflection",),
)
