"""SkillOpt with Codex: the target as an agent, the optimizer and the judge as a chat model."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-codex-exec")

plugin = Manifest(
    kind="backend",
    name="codex_exec",
    api=PLUGIN_API,
    summary="Codex (`codex exec`): the target as an agent, the optimizer and the judge as a chat model",
    factory="skillopt_backend_codex_exec.backend:make_backend",
    settings="skillopt_backend_codex_exec.settings:CodexExecSettings",
    section="model",
    prefix="codex_exec_",
)
