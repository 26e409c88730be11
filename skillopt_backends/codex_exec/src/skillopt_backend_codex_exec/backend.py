"""The backend: Codex as an agent for the target, as a chat model for the optimizer and the judge."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import ConfigError, ModelError, PermanentError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_lib_agent.conversation import conversation_of, reply_of
from skillopt_lib_agent.failures import Program
from skillopt_lib_agent.finding import find_program
from skillopt_lib_agent.isolation import isolation_required, own_paths
from skillopt_lib_agent.launcher import Launcher, copied
from skillopt_lib_agent.skill_file import NAME, place_skill
from skillopt_lib_agent.workspace import Place, collect, fresh_place, lay_files

from skillopt_backend_codex_exec.command import KEY_VARIABLE, NEEDED, OLDEST, agent_arguments, chat_arguments
from skillopt_backend_codex_exec.reading import Told, read_turn
from skillopt_backend_codex_exec.sdk_program import PROGRAM
from skillopt_backend_codex_exec.session import session_usage
from skillopt_backend_codex_exec.settings import CodexExecSettings

AGENT, CHAT = frozenset({"agent"}), frozenset({"chat"})
SKILLS = ".agents/skills"
"""Where Codex looks for skills in its working folder."""

CODEX = Program(
    name="Codex",
    command="codex",
    setting="model.codex_exec_path",
    install="npm install -g @openai/codex",
    upgrade="npm install -g @openai/codex@latest",
    sign_in="Run `codex login`, or set CODEX_API_KEY or model.codex_exec_api_key.",
)


def make_backend(settings: CodexExecSettings, context: DriverContext) -> CodexExecBackend:
    """The backend of one role. `context.common` are the settings of the section `execution`."""
    required = isolation_required(context)
    command, given, readable = _command(settings)
    launcher = Launcher(
        CODEX,
        settings,
        command=command,
        given=given,
        readable=readable,
        help=("exec", "--help"),
        needed=NEEDED,
        oldest=OLDEST,
        require_isolation=required,
        credentials=[settings.api_key],
    )
    return CodexExecBackend(Codex(settings, launcher, context.model or ""))


def _command(settings: CodexExecSettings) -> tuple[str, dict[str, str], list[Path]]:
    """What is run, with which variables, and what it may read: Codex itself, or the program that has the SDK run it."""
    if settings.use_sdk not in (True, "sdk"):
        return settings.path, {}, []
    if find_spec("openai_codex_sdk") is None:
        raise ConfigError(
            "model.codex_exec_use_sdk is sdk, and the Codex SDK is not installed. Install it "
            "(`pip install 'skillopt-backend-codex-exec[sdk]'`), or set model.codex_exec_use_sdk to cli."
        )
    program = find_program(settings.path)
    folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep)]
    own = find_program("skillopt-codex-sdk", folders)
    specs = map(find_spec, ("openai_codex_sdk", "skillopt_backend_codex_exec", "skillopt_kernel"))
    packages = [Path(spec.origin).parents[1] for spec in specs if spec is not None and spec.origin]
    readable = [*packages, *(own_paths(program) if program else ())]
    return str(own or "skillopt-codex-sdk"), {PROGRAM: str(program or settings.path)}, readable


@frozen(eq=False)
class Codex:
    """Runs `codex exec` with a prompt, in a place that was made for it. `model`: "" for Codex's own default."""

    settings: CodexExecSettings
    launcher: Launcher
    model: str

    def run(self, place: Place, arguments: list[str], prompt: str, deadline: float | None) -> tuple[Told, bool]:
        """What a turn came to, and whether it was isolated. Raises `ModelError`."""
        home = place.home / ".codex"
        self._sign_in(home)
        given = {"CODEX_HOME": str(home)}
        if self.settings.api_key:
            given[KEY_VARIABLE if self.settings.base_url else "CODEX_API_KEY"] = self.settings.api_key.strip()
        ends = self.launcher.deadline(deadline)
        try:
            done, isolated = self.launcher.run(place, arguments, stdin=prompt, deadline=ends, given=given)
            return read_turn(done, home, CODEX, self.launcher.redactor), isolated
        except ModelError as error:
            error.usage = session_usage(home)
            raise

    def _sign_in(self, home: Path) -> None:
        """A private configuration folder, with nothing of the operator's but what signs in and a named profile."""
        home.mkdir(mode=0o700)
        settings = self.settings
        if settings.profile and not copied(
            operator_folder() / f"{settings.profile}.config.toml", home, _profile(settings)
        ):
            raise PermanentError(
                f"Codex's profile {settings.profile!r} was not found: there is no file "
                f"{operator_folder() / _profile(settings)}. Write it, or delete model.codex_exec_profile."
            )
        if settings.base_url or settings.api_key:
            return
        if not copied(self.auth_file, home, "auth.json") and not self._passes_key():
            raise PermanentError(f"Codex is not signed in: there is no file {self.auth_file}. {CODEX.sign_in}")

    def _passes_key(self) -> bool:
        return any(os.environ.get(name) for name in self.settings.pass_variables)

    @property
    def auth_file(self) -> Path:
        return self.settings.auth_file or operator_folder() / "auth.json"


def operator_folder() -> Path:
    """Where the operator's Codex keeps its configuration."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex").expanduser()


def _profile(settings: CodexExecSettings) -> str:
    return f"{settings.profile}.config.toml"


@frozen(eq=False)
class CodexAgent:
    """Implements `AgentHarness`."""

    codex: Codex

    @property
    def model(self) -> str:
        return self.codex.model

    def run(self, job: AgentJob) -> AgentResult:
        """Have Codex do a job in a fresh workspace with the skill in it. Raises `ModelError`."""
        with fresh_place() as place, self.codex.launcher.laid(place, job):
            folder = place_skill(place.workspace, SKILLS, job.skill)
            # A skill that is named so is read by Codex itself, whole, before the model's first word.
            prompt = f"Follow ${NAME}.\n\n{job.prompt}" if folder else job.prompt
            arguments = agent_arguments(self.codex.settings, self.model, place.workspace, edits=job.edits)
            told, isolated = self.codex.run(place, arguments, prompt, job.deadline)
            files = collect(place.workspace, job.collect, [SKILLS])
        return AgentResult(told.answer, files, told.turns, told.usage, isolated)


@frozen(eq=False)
class CodexChat:
    """Implements `ChatModel`: no tools reach the model, and no instructions but the request's own."""

    codex: Codex

    @property
    def model(self) -> str:
        return self.codex.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """One request, one reply. Raises `ModelError`."""
        asked = conversation_of(request)
        with fresh_place() as place:
            instructions = place.home / "instructions.md"
            instructions.write_bytes((asked.system or "You are a helpful assistant.").encode())
            lay_files(place.home, asked.images)
            schema = None
            if asked.schema is not None:
                schema = place.home / "schema.json"
                schema.write_text(json.dumps(asked.schema), encoding="utf-8")
            arguments = chat_arguments(
                self.codex.settings,
                self.model,
                place.workspace,
                system=instructions,
                schema=schema,
                images=[place.home / name for name in asked.images],
                effort=request.effort,
            )
            told, _ = self.codex.run(place, arguments, asked.prompt, request.deadline)
        return reply_of(told.answer, request, told.usage)


class CodexExecBackend:
    """Implements `Backend`."""

    capabilities: Mapping[str, frozenset[str]] = {"target": AGENT, "optimizer": CHAT, "judge": CHAT}

    def __init__(self, codex: Codex) -> None:
        self._codex = codex

    def open_chat(self, role: str) -> CodexChat:
        self._must_play(role, "chat")
        return CodexChat(self._codex)

    def open_agent(self, role: str) -> CodexAgent:
        self._must_play(role, "agent")
        return CodexAgent(self._codex)

    def _must_play(self, role: str, kind: str) -> None:
        if kind not in self.capabilities.get(role, ()):
            raise ConfigError(
                f"the backend 'codex_exec' does not play the {role} as {kind}: the target is an agent, optimizer and "
                f"judge are chat models. Name another backend in `model.{role}_backend`."
            )

    def endpoint(self, role: str) -> str:
        return self._codex.settings.base_url.strip().rstrip("/") or "codex"

    def check(self, role: str) -> list[Finding]:
        """Program, version, isolation, and whether Codex is signed in; spends nothing."""
        findings: list[Any] = self._codex.launcher.check()
        try:
            with fresh_place() as place:
                self._codex._sign_in(place.home / ".codex")
        except PermanentError as error:
            return [*findings, ("error", str(error))]
        settings = self._codex.settings
        how = (
            "with a key"
            if settings.api_key
            else "at your endpoint"
            if settings.base_url
            else f"as in {self._codex.auth_file}"
        )
        return [*findings, ("ok", f"Codex signs in {how}")]

    def close(self) -> None:
        """End whatever runs."""
        self._codex.launcher.close()
