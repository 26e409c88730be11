"""SkillOpt on the OpenAI API and on Azure OpenAI."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-openai-chat")

plugin = Manifest(
    kind="backend",
    name="openai_chat",
    api=PLUGIN_API,
    summary="The OpenAI API, or Azure OpenAI where azure_openai_endpoint is set",
    factory="skillopt_backend_openai_chat.backend:make_backend",
    settings="skillopt_backend_openai_chat.settings:OpenAIChatSettings",
    section="model",
)
