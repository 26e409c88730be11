"""The environment `rehearsal`: tasks whose attempts do what is written in them, for tests of what runs attempts."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest

plugin = Manifest(
    kind="env",
    name="rehearsal",
    api=PLUGIN_API,
    summary="tasks whose attempts work, print, fail, hang or end their process, as written in the data",
    factory="skillopt_testkit.rehearsal.environment:RehearsalEnvironment",
    settings="skillopt_testkit.rehearsal.environment:RehearsalSettings",
    section="env",
)
