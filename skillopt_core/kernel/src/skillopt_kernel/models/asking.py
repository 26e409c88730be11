"""The optimizer as a call site uses it: a prompt in, JSON out, or a typed failure that says what was wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from skillopt_kernel.errors import UnusableReply
from skillopt_kernel.models.parsing import extract_json
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message
from skillopt_kernel.store.patterns import clipped, redact_diagnostics

Check = Callable[[Mapping[str, Any]], str | None]

DEFAULT_MAX_TOKENS = 16_384
LENGTH_OF_HEAD = 200
"""Characters of an unusable reply that its error shows."""

_FINISH_REASONS = {
    "length": "the reply was cut off at the token limit",
    "filtered": "the reply was withheld by the provider's content filter",
    "empty": "the reply was empty",
}
_REMINDER = (
    "Your last reply to this request could not be used: {}. Answer it again with JSON only: exactly one JSON object "
    "in the form that was asked for, complete, and no other text before or after it."
)


@frozen
class ModelOptimizer:
    """Implements `Optimizer` for one stage. Keeps nothing between calls, so threads may share it.

    complete  makes one call (`ModelCaller.complete`)
    effort    reasoning effort of every call, `None`: the backend's own; max_tokens: where a call names none
    """

    _complete: Callable[[ChatRequest], ChatReply]
    _stage: str
    _effort: str | None = None
    _max_tokens: int = DEFAULT_MAX_TOKENS

    def ask(
        self, system: str, user: str, *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> ChatReply:
        """The reply as it came; `finish` says whether it is whole. Raises `ModelError`."""
        messages = (Message("system", system), Message("user", user))
        limit = max_tokens or self._max_tokens
        return self._complete(
            ChatRequest(messages, schema=schema, max_tokens=limit, effort=self._effort, stage=self._stage)
        )

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
        prompt = user
        for _ in range(2):
            reply = self.ask(system, prompt, max_tokens=max_tokens, schema=schema)
            found, wrong = _read(reply, check)
            if found is not None:
                return found
            prompt = f"{user}\n\n{_REMINDER.format(wrong)}"
        head = clipped(redact_diagnostics(reply.text), LENGTH_OF_HEAD)
        raise UnusableReply(f"the optimizer's reply could not be used, the reminder included: {wrong}", head)


def _read(reply: ChatReply, check: Check | None) -> tuple[Mapping[str, Any] | None, str]:
    """The object and "", or `None` and what is wrong with the reply."""
    if reply.finish in _FINISH_REASONS:
        return None, _FINISH_REASONS[reply.finish]
    found = extract_json(reply.text)
    if not isinstance(found, dict):
        return None, "it holds no JSON object, or more than one"
    wrong = check(found) if check else None
    return (found, "") if wrong is None else (None, wrong)
