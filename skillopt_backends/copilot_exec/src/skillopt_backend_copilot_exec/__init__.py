"""The Copilot CLI as the agent that does the tasks."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-copilot-exec")

plugin = Manifest(
    kind="backend",
    name="copilot_exec",
    api=PLUGIN_API,
    summary="The Copilot CLI as the agent that does the tasks",
    factory="skillopt_backend_copilot_exec.backend:make_backend",
    settings="skillopt_backend_copilot_exec.settings:CopilotExecSettings",
    section="model",
)
