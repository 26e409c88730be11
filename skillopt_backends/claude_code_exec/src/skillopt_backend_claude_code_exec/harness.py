"""One job of Claude Code: laid out, run with the tools that the job needs, and read back."""

from __future__ import annotations

import json
import re
from pathlib import Path

from attrs import frozen
from skillopt_kernel.errors import ConfigError, RefusedError
from skillopt_kernel.models.requests import AgentJob, AgentResult
from skillopt_kernel.records import Trajectory, Turn
from skillopt_lib_agent.claude.program import effort_of, prompt_input
from skillopt_lib_agent.claude.reading import Told, read
from skillopt_lib_agent.events import read_events
from skillopt_lib_agent.handing import BY_PIPE
from skillopt_lib_agent.launcher import Launcher
from skillopt_lib_agent.skill_file import place_skill
from skillopt_lib_agent.workspace import collect, fresh_place

from skillopt_backend_claude_code_exec.settings import ClaudeCodeExecSettings

SKILLS = ".claude/skills"
"""Where Claude Code looks for the skills of a project. The prompt calls the skill by its name, as a user would, so that
the whole of it is in the first request."""

READING = ("Read", "Glob", "Grep")
WRITING = ("Edit", "Write", "Bash")

_OWN_SETTINGS = {
    "disableSkillShellExecution": True,
    "attribution": {"commit": "", "pr": ""},
    "includeCoAuthoredBy": False,
}
"""A skill's text is text: `!`command`` in it runs nothing. And no advice on commits is in the prompt."""

_BUILT_IN = ("cc-plugin-plugin-authoring", "cc-plugin-agents-md", "cc-plugin-privacy")
"""Plugins that the program brings, with skills of their own."""

_PIPES = {"ANTHROPIC_API_KEY": "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
          "CLAUDE_CODE_OAUTH_TOKEN": "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"}  # fmt: skip
"""What holds a credential -> what says which pipe to read it from, so that no command of the agent's can print it."""

_PLACEHOLDER = re.compile(r"\$(?=ARGUMENTS\b|\d)")
"""What Claude Code would put the prompt, or a word of it, in place of when it loads a skill."""

_ALONE = """\


Work in the current folder. Nobody is there to answer a question or to permit anything: finish by yourself with the \
tools that you have. Your last message is your answer."""


@frozen(eq=False)
class ClaudeCodeHarness:
    """Implements `AgentHarness`. Used from many threads at once: each job is a process in folders of its own."""

    model: str
    _settings: ClaudeCodeExecSettings
    _launcher: Launcher

    def run(self, job: AgentJob) -> AgentResult:
        """Run one job. Raises typed errors as `AgentHarness` says; an empty answer is an empty message."""
        self._settings.require_sign_in(self._launcher.program)
        deadline = self._launcher.deadline(job.deadline)
        with fresh_place() as place, self._launcher.laid(place, job):
            skill = place_skill(place.workspace, SKILLS, _PLACEHOLDER.sub(r"\\$", job.skill))
            settings = place.home / "job-settings.json"
            settings.write_text(json.dumps(self._program_settings()), encoding="utf-8")
            effort, given = self._thinking()
            given |= self._settings.variables(place.home)
            credentials = self._settings.credentials
            handed = {_PIPES[name]: credentials.pop(name) for name in tuple(credentials) if BY_PIPE and name in _PIPES}
            done, isolated = self._launcher.run(
                place,
                [*self._arguments(job, settings), *effort],
                stdin=_prompt(job, skill),
                deadline=deadline,
                given=given | credentials,
                handed=handed,
            )
            told = read(read_events(done.stdout), done, self._launcher.program, self._launcher.redactor)
            files = collect(place.workspace, job.collect, besides=[SKILLS] if skill else [])
        if told.ending == "refused":
            error = RefusedError(f"{self._launcher.program.name}: the model refused the job.")
            error.usage = told.usage
            raise error
        return AgentResult(told.text, files, _trajectory(told), told.usage, isolated)

    def _arguments(self, job: AgentJob, settings: Path) -> list[str]:
        tools = list(self._settings.tools or (READING + WRITING if job.edits else READING))
        permitted = [_permission(tool) for tool in tools if tool not in READING]
        arguments = ["--print", "--output-format", "stream-json", "--verbose"]
        arguments += ["--model", self.model, "--tools", ",".join(tools), "--setting-sources=project"]
        arguments += ["--settings", str(settings), "--strict-mcp-config", "--no-session-persistence"]
        # What is not permitted is denied, as root as well: nothing is asked, and nothing bypassed.
        arguments += ["--permission-mode", "dontAsk"]
        if permitted:
            arguments += ["--allowedTools", ",".join(permitted)]
        return arguments + (["--max-turns", str(job.max_turns)] if job.max_turns else [])

    def _thinking(self) -> tuple[list[str], dict[str, str]]:
        told = self._settings
        arguments, given = effort_of(told.effort)
        if told.max_thinking_tokens and "MAX_THINKING_TOKENS" not in given:
            given["MAX_THINKING_TOKENS"] = str(told.max_thinking_tokens)
        if told.max_tokens:
            given["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(told.max_tokens)
        return arguments, given

    def _program_settings(self) -> dict[str, object]:
        """The settings of a job: the profile's, and over them what keeps jobs comparable."""
        profile = _read_profile(self._settings.profile)
        plugins = {f"{name}@builtin": False for name in _BUILT_IN}
        told = profile.get("enabledPlugins")
        return {**profile, **_OWN_SETTINGS, "enabledPlugins": {**(told if isinstance(told, dict) else {}), **plugins}}


def _permission(tool: str) -> str:
    """The rule that permits a tool: to write inside the workspace only."""
    return f"{tool}(./**)" if tool in ("Edit", "Write", "NotebookEdit") else tool


def _prompt(job: AgentJob, skill: str) -> str:
    if skill:
        return f"/{skill.rpartition('/')[2]}\n{job.prompt}{_ALONE}"
    return prompt_input(f"{job.prompt}{_ALONE}")[1]


def _trajectory(told: Told) -> Trajectory:
    if told.ending == "turns used up":
        return (*told.trajectory, Turn("environment", "The agent has used up its turns without an answer."))
    return told.trajectory


def _read_profile(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"model.claude_code_exec_profile: {path} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"model.claude_code_exec_profile: {path} holds no JSON object with settings of Claude Code")
    return found
