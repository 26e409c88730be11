"""The optimizer as a call site uses it: a prompt in, JSON out, or a typed failure that says what was wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skillopt_kernel.errors import UnusableReply
from skillopt_kernel.models.parsing import extract_json
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message
from skillopt_kernel.store.redaction import Redactor

Check = Callable[[Mapping[str, Any]], str | None]

DEFAULT_MAX_TOKENS = 16_384
LENGTH_OF_HEAD = 200
"""Characters of an unusable reply that its error shows."""
LENGTH_OF_ECHO = 8_000
"""Characters of an unusable reply that are shown to the model with the reminder."""

_FINISH_REASONS = {
    "length": "the reply was cut off at the token limit",
    "filtered": "the reply was withheld by the provider's content filter",
    "empty": "the reply was empty",
}


class ModelOptimizer:
    """Implements `Optimizer` for one stage. Keeps nothing between calls, so threads may share it.

    complete  makes one call (`ModelCaller.complete`)
    effort    reasoning effort of every call, `None`: the backend's own
    """

    def __init__(
        self,
        complete: Callable[[ChatRequest], ChatReply],
        *,
        stage: str,
        effort: str | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._complete, self._stage, self._effort = complete, stage, effort
        self._redactor = redactor or Redactor()

    def ask(self, system: str, user: str, *, max_tokens: int | None = None) -> ChatReply:
        """The reply as it came; `finish` says whether it is whole. Raises `ModelError`."""
        return self._send((Message("system", system), Message("user", user)), None, max_tokens)

    def ask_json(
        self,
        system: str,
        user: str,
        *,
        check: Check | None = None,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Mapping[str, Any]:
        """The JSON object of the reply, after at most one reminder. Raises `UnusableReply` and other `ModelError`.

        A reply that was cut off is never read: what is left of it may look whole.
        """
        messages = (Message("system", system), Message("user", user))
        reply = self._send(messages, schema, max_tokens)
        found, wrong = _read(reply, check)
        if found is None:
            reply = self._send((*messages, *_reminder(reply, wrong)), schema, max_tokens)
            found, wrong = _read(reply, check)
        if found is None:
            head = self._redactor.diagnostics(reply.text)[:LENGTH_OF_HEAD]
            raise UnusableReply(f"the optimizer's reply could not be used, the reminder included: {wrong}", head)
        return found

    def _send(
        self, messages: tuple[Message, ...], schema: Mapping[str, Any] | None, max_tokens: int | None
    ) -> ChatReply:
        return self._complete(
            ChatRequest(
                messages=messages,
                schema=schema,
                max_tokens=max_tokens or DEFAULT_MAX_TOKENS,
                effort=self._effort,
                stage=self._stage,
            )
        )


def _read(reply: ChatReply, check: Check | None) -> tuple[Mapping[str, Any] | None, str]:
    """The object and "", or `None` and what is wrong with the reply."""
    if reply.finish in _FINISH_REASONS:
        return None, _FINISH_REASONS[reply.finish]
    found = extract_json(reply.text)
    if found is None:
        return None, "it holds no JSON object, or more than one"
    if not isinstance(found, dict):
        return None, f"its JSON is a {type(found).__name__}, not an object"
    wrong = check(found) if check else None
    return (found, "") if wrong is None else (None, wrong)


def _reminder(reply: ChatReply, wrong: str) -> tuple[Message, ...]:
    text = (
        f"Your last reply could not be used: {wrong}. Answer the same request again with JSON only: exactly one "
        "JSON object in the form that was asked for, and no other text before or after it."
    )
    if reply.finish == "length":
        return (Message("user", f"{text} Keep it short enough to be complete."),)
    echo = (Message("assistant", reply.text[:LENGTH_OF_ECHO]),) if reply.text.strip() else ()
    return (*echo, Message("user", text))
