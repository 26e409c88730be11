"""One model, asked by `claude -p`: the prompt on standard input, the system prompt in a file, no tool of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import PermanentError
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_lib_agent.claude.program import effort_of, prompt_input
from skillopt_lib_agent.claude.reading import Told, read
from skillopt_lib_agent.conversation import conversation_of, reply_of
from skillopt_lib_agent.events import read_events
from skillopt_lib_agent.launcher import Launcher
from skillopt_lib_agent.workspace import fresh_place

from skillopt_backend_claude_chat.settings import ClaudeChatSettings

LONGEST_SCHEMA = 20_000
"""Characters: a schema goes on the command line, whose length some systems limit to little more. A longer one of a
reply is left out, as by backends that cannot enforce one."""


@frozen(eq=False)
class ClaudeChatModel:
    """Implements `ChatModel`. Used from many threads at once: each call is a process in folders of its own."""

    model: str
    _settings: ClaudeChatSettings
    _launcher: Launcher

    @property
    def max_tokens(self) -> int | None:
        """The setting's limit of a reply."""
        return self._settings.max_tokens

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to one request. A temperature and a seed are left out, since the program takes none.

        Raises typed errors as `ChatModel` says; a reply that was cut off at its limit has the finish "length".
        """
        self._settings.require_sign_in(self._launcher.program)
        told = conversation_of(request)
        schema = self._schema(request, told.schema)
        as_json, prompt = prompt_input(told.prompt, told.images)
        arguments, given = self._asking(request)
        with fresh_place() as place:
            system = place.scratch / "system.md"
            system.write_text(told.system, encoding="utf-8", errors="replace")
            arguments += [*as_json, "--system-prompt-file", str(system)]
            if schema is not None:
                arguments += ["--json-schema", json.dumps(schema)]
            done, _ = self._launcher.run(
                place,
                arguments,
                stdin=prompt,
                deadline=self._launcher.deadline(request.deadline),
                given={**self._settings.variables(place.home), **self._settings.credentials, **given},
            )
            events = read_events(done.stdout)
            if as_json and done.code == 0 and not events.items:
                raise self._takes_no_images()
            return _reply(read(events, done, self._launcher.program, self._launcher.redactor), request)

    def _takes_no_images(self) -> PermanentError:
        program, version = self._launcher.program, self._launcher.capability().version
        return PermanentError(
            f"{program.name} {version} said nothing to a message with an image, as older versions do. Install a newer "
            f"one: `{program.upgrade}`."
        )

    def _asking(self, request: ChatRequest) -> tuple[list[str], dict[str, str]]:
        """Arguments and variables of a call."""
        arguments = ["--print", "--output-format", "stream-json", "--verbose"]
        arguments += ["--model", self.model, "--tools=", "--setting-sources=", "--strict-mcp-config"]
        arguments += ["--disable-slash-commands", "--no-session-persistence"]
        if self._settings.only_key:
            arguments.append("--bare")
        effort, given = effort_of(request.effort)
        limit = min((each for each in (request.max_tokens, self.max_tokens) if each), default=None)
        if limit:
            given["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(limit)
        return arguments + effort, given

    def _schema(self, request: ChatRequest, of_tools: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The schema that the program enforces: of a reply with tool calls, or the request's own, if it can."""
        if request.tools:
            return of_tools
        schema = request.schema
        if schema is None or not self._settings.structured_output or schema.get("type") != "object":
            return None
        return schema if len(json.dumps(schema)) <= LONGEST_SCHEMA else None


def _reply(told: Told, request: ChatRequest) -> ChatReply:
    if told.ending == "cut off":
        return ChatReply(told.first, finish="length", usage=told.usage)
    if told.ending == "refused":
        return ChatReply(told.text, finish="filtered", usage=told.usage)
    if told.structured is not None:
        return reply_of(json.dumps(told.structured, ensure_ascii=False), request, told.usage)
    return ChatReply(told.text, finish="stop" if told.text.strip() else "empty", usage=told.usage)
