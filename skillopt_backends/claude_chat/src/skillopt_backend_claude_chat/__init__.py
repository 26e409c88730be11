"""Claude as a chat model for SkillOpt, through the program Claude Code."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-claude-chat")

plugin = Manifest(
    kind="backend",
    name="claude_chat",
    api=PLUGIN_API,
    summary="Claude as a chat model, through the program `claude`: no tools, no settings, no files of the operator's",
    factory="skillopt_backend_claude_chat.backend:make_backend",
    settings="skillopt_backend_claude_chat.settings:ClaudeChatSettings",
    section="model",
    prefix="claude_chat_",
)
