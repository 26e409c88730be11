"""The command line of `codex exec`: everything that a run decides stands there, and nothing of the operator's is read.

No text of a task and no key is on it: the prompt comes by stdin, the system prompt by a file, the key by a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillopt_backend_codex_exec.settings import CodexExecSettings

KEY_VARIABLE = "SKILLOPT_CODEX_KEY"
PROVIDER = "skillopt"

NEEDED = (
    "--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check", "--sandbox", "--config",
    "--cd", "--model", "--image", "--output-schema", "--disable", "--color", "--profile",
)  # fmt: skip
OLDEST = "0.171.0"
"""The version that these flags were tried with."""

AGENT_WITHOUT = ("multi_agent", "goals", "apps", "plugins", "hooks", "tool_suggest")
"""Features that would give an agent tools or instructions which no task asks for."""

CHAT_WITHOUT = (*AGENT_WITHOUT, "shell_tool", "unified_exec", "view_image")
"""For a chat model: what is left has no tools."""

_CHAT = (
    "include_permissions_instructions=false",
    "include_environment_context=false",
    "skills.include_instructions=false",
    "project_doc_max_bytes=0",
)


def agent_arguments(
    settings: CodexExecSettings, model: str, workspace: Path, *, edits: bool, images: Sequence[Path] = ()
) -> list[str]:
    """The arguments of an agent's job. One that may not write gets a sandbox that does not let it.

    Its session is recorded, in its private home: the record is what its turns are read from.
    """
    sandbox = settings.sandbox if edits or settings.sandbox == "danger-full-access" else "read-only"
    values = [
        f"sandbox_workspace_write.network_access={_word(settings.network_access)}",
        f"web_search={'live' if settings.web_search else 'disabled'}",
        *_shared_values(settings, settings.reasoning_effort),
    ]
    return _arguments(settings, model, workspace, sandbox, values, AGENT_WITHOUT, images)


def chat_arguments(
    settings: CodexExecSettings,
    model: str,
    workspace: Path,
    *,
    system: Path,
    schema: Path | None,
    images: Sequence[Path],
    effort: str | None,
) -> list[str]:
    """The arguments of a chat model's call: no tools, no instructions but those in the file `system`."""
    values = [
        f"model_instructions_file={system}",
        "web_search=disabled",
        *_CHAT,
        *_shared_values(settings, "xhigh" if effort == "max" else effort or settings.reasoning_effort),
    ]
    made = _arguments(settings, model, workspace, "read-only", values, CHAT_WITHOUT, images)
    further = ["--ephemeral"] if schema is None else ["--ephemeral", "--output-schema", str(schema)]
    return [*made[:-1], *further, made[-1]]


def _shared_values(settings: CodexExecSettings, effort: str) -> list[str]:
    values = [
        f"approval_policy={settings.approval_policy}",
        "shell_environment_policy.inherit=core",
        "skills.bundled.enabled=false",
        "tools.experimental_request_user_input.enabled=false",
        "check_for_update_on_startup=false",
        "analytics.enabled=false",
    ]
    if effort:
        values.append(f"model_reasoning_effort={effort}")
    if settings.base_url:
        own = {"name": PROVIDER, "base_url": settings.base_url.strip().rstrip("/"), "wire_api": "responses"}
        # The kernel tries again, with one limit for all calls of an endpoint.
        own |= {"request_max_retries": "0", "stream_max_retries": "0"}
        if settings.api_key:
            own["env_key"] = KEY_VARIABLE
        values += [f"model_provider={PROVIDER}", *(f"model_providers.{PROVIDER}.{name}={own[name]}" for name in own)]
    return values


def _arguments(
    settings: CodexExecSettings,
    model: str,
    workspace: Path,
    sandbox: str,
    values: Sequence[str],
    without: Sequence[str],
    images: Sequence[Path],
) -> list[str]:
    made = ["exec", "--json", "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"]
    for image in images:  # the flag takes all that follows, up to the next flag
        made += ["--image", str(image)]
    made += ["--color", "never", "--cd", str(workspace), "--sandbox", sandbox]
    if settings.profile:
        made += ["--profile", settings.profile]
    for feature in without:
        made += ["--disable", feature]
    for value in values:
        made += ["--config", value]
    if model:
        made += ["--model", model]
    return [*made, "-"]


def _word(value: bool) -> str:
    return "true" if value else "false"
