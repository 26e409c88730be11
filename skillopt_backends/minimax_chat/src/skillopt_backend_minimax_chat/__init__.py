"""SkillOpt on the MiniMax API."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-minimax-chat")

plugin = Manifest(
    kind="backend",
    name="minimax_chat",
    api=PLUGIN_API,
    summary="The MiniMax API of either region, a model for each role",
    factory="skillopt_backend_minimax_chat.backend:make_backend",
    settings="skillopt_backend_minimax_chat.settings:MiniMaxChatSettings",
    section="model",
    prefix="minimax_",
)
