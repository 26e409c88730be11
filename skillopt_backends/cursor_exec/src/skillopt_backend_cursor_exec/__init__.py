"""Cursor's command-line agent as the agent that does the tasks."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-cursor-exec")

plugin = Manifest(
    kind="backend",
    name="cursor_exec",
    api=PLUGIN_API,
    summary="Cursor's command-line agent as the agent that does the tasks",
    factory="skillopt_backend_cursor_exec.backend:make_backend",
    settings="skillopt_backend_cursor_exec.settings:CursorExecSettings",
    section="model",
    prefix="cursor_exec_",
)
