"""The backend: every role as a chat model, each call a session of the program without tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from attrs import frozen
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.parsing import extract_json
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_lib_agent.conversation import conversation_of, reply_of
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.workspace import fresh_place, lay_files
from skillopt_lib_copilot.program import NO_TOOLS, Copilot

from skillopt_backend_copilot_chat.settings import CopilotChatSettings

CHAT = frozenset({"chat"})

PREFACE = (
    "What you are asked comes from a program, not from a person at a terminal. Reply with all that is asked for, at "
    "the length that it needs, and with nothing else: your reply is read as it stands, and nothing beside it is seen."
)
"""Stands before a request's own instructions: those of Copilot ask for short replies to a developer."""


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
        """The reply of one session without tools, in a folder with nothing but images and a home of its own.

        Tools of the request are told of in its instructions, and the model asks for them in JSON.
        """
        asked = conversation_of(request)
        with fresh_place() as place:
            lay_files(place.workspace, asked.images)
            attached = [word for name in asked.images for word in ("--attachment", str(place.workspace / name))]
            effort = ["--reasoning-effort", request.effort] if request.effort and self._send_effort else []
            ended = self.copilot.run(
                place,
                asked.prompt,
                [NO_TOOLS, *effort, *attached],
                instructions=f"{PREFACE}\n\n{asked.system}".strip(),
                model=self.model,
                deadline=request.deadline,
                max_tokens=request.max_tokens,
            )
        session = ended.session
        if session.filtered:
            return ChatReply("", finish="filtered", usage=ended.usage)
        if session.cut_off:
            return ChatReply(session.answer, finish="length", usage=ended.usage)
        # Nothing holds the model to the form of a reply with tools: it may stand between words, or in a fence.
        found = extract_json(session.answer) if request.tools else None
        return reply_of(session.answer if found is None else json.dumps(found), request, ended.usage)
