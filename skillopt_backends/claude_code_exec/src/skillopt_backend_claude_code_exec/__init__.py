"""Claude Code as the agent that SkillOpt trains a skill for."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-claude-code-exec")

plugin = Manifest(
    kind="backend",
    name="claude_code_exec",
    api=PLUGIN_API,
    summary="The agent Claude Code as the target: it works in a fresh folder, with the skill where it looks for skills",
    factory="skillopt_backend_claude_code_exec.backend:make_backend",
    settings="skillopt_backend_claude_code_exec.settings:ClaudeCodeExecSettings",
    section="model",
    prefix="claude_code_exec_",
)
