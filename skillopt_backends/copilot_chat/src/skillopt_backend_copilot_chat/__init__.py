"""The Copilot CLI as a chat model: no tools, nothing of this machine."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-copilot-chat")

plugin = Manifest(
    kind="backend",
    name="copilot_chat",
    api=PLUGIN_API,
    summary="The Copilot CLI as a chat model: no tools, nothing of this machine",
    factory="skillopt_backend_copilot_chat.backend:make_backend",
    settings="skillopt_backend_copilot_chat.settings:CopilotChatSettings",
    section="model",
)
