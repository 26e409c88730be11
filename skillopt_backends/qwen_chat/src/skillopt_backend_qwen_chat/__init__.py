"""SkillOpt on Qwen models, served by vLLM, SGLang or a gateway."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-qwen-chat")

plugin = Manifest(
    kind="backend",
    name="qwen_chat",
    api=PLUGIN_API,
    summary="Qwen models, served by vLLM, SGLang or a gateway, with thinking on, off or as the server likes",
    factory="skillopt_backend_qwen_chat.backend:make_backend",
    settings="skillopt_backend_qwen_chat.settings:QwenChatSettings",
    section="model",
    prefix="qwen_chat_",
)
