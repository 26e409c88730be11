"""A person or another program as the model of SkillOpt: each call is a file, and so is its answer."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-handoff")

plugin = Manifest(
    kind="backend",
    name="handoff",
    api=PLUGIN_API,
    summary="Writes each call into a file and waits for a person or another program to answer it",
    factory="skillopt_backend_handoff.backend:make_backend",
    section="model",
    prefix="handoff_",
)
