"""The backend: every role as a chat model, each call a session of the program without tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from attrs import frozen
from skillopt_kernel.errors import ConfigError, PermanentError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Finish
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.workspace import fresh_place
from skillopt_lib_copilot.program import NO_TOOLS, Copilot
from skillopt_lib_copilot.session import Session

from skillopt_backend_copilot_chat.prompt import place_images, prompt_of
from skillopt_backend_copilot_chat.settings import CopilotChatSettings

CHAT = frozenset({"chat"})


def make_backend(settings: CopilotChatSettings, context: DriverContext) -> CopilotChatBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    return CopilotChatBackend(settings, context.model or settings.copilot_chat_model)


class CopilotChatBackend:
    """Implements `Backend`: every role as a chat model."""

    capabilities: Mapping[str, frozenset[str]] = {"optimizer": CHAT, "target": CHAT, "judge": CHAT}

    def __init__(self, settings: CopilotChatSettings, model: str) -> None:
        self._settings = settings
        shared = ProgramSettings(timeout_seconds=float(settings.copilot_chat_timeout))
        self._model = CopilotChatModel(model, Copilot.of(settings, shared), settings.copilot_chat_send_effort)

    def open_chat(self, role: str) -> CopilotChatModel:
        """The model; starts nothing."""
        return self._model

    def open_agent(self, role: str) -> NoReturn:
        raise ConfigError(
            "the backend 'copilot_chat' is a chat model and runs no agent's job; name 'copilot_exec' in "
            f"`model.{role}_backend`."
        )

    def endpoint(self, role: str) -> str:
        return self._settings.endpoint

    def check(self, role: str) -> list[Finding]:
        return self._model.copilot.check(self._model.model)

    def close(self) -> None:
        """End the sessions that run."""
        self._model.copilot.close()


@frozen
class CopilotChatModel:
    """Implements `ChatModel`. Used from many threads at once.

    Copilot has no way to force a reply's form, a temperature or a seed; what a request says of these is not sent.
    """

    model: str
    copilot: Copilot
    _send_effort: bool = True

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply of one session without tools, in an empty folder and a home of its own."""
        if request.tools:
            raise PermanentError(
                "the backend 'copilot_chat' cannot offer the tools that this environment has. Name another backend for "
                "this role, such as 'openai_chat'."
            )
        prompt = prompt_of(request.messages)
        with fresh_place() as place:
            attached = place_images(prompt.images, place.workspace)
            effort = ["--reasoning-effort", request.effort] if request.effort and self._send_effort else []
            ended = self.copilot.run(
                place,
                prompt.text,
                [NO_TOOLS, *effort, *attached],
                model=self.model,
                deadline=request.deadline,
                max_tokens=request.max_tokens,
            )
        finish = _finish(ended.session)
        return ChatReply("" if finish == "filtered" else ended.session.answer, finish=finish, usage=ended.usage)


def _finish(session: Session) -> Finish:
    if session.filtered:
        return "filtered"
    if session.cut_off:
        return "length"
    return "stop" if session.answer.strip() else "empty"
