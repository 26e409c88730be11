"""SkillOpt on any endpoint that speaks Chat Completions."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-openai-compatible")

plugin = Manifest(
    kind="backend",
    name="openai_compatible",
    api=PLUGIN_API,
    summary="Any endpoint that speaks Chat Completions, such as OpenAI, vLLM, Ollama and llama.cpp",
    factory="skillopt_backend_openai_compatible.backend:make_backend",
    settings="skillopt_backend_openai_compatible.settings:OpenAICompatibleSettings",
    section="model",
    prefix="openai_compatible_",
)
