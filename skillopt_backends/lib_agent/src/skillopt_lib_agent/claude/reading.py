"""What Claude Code printed (`--output-format stream-json --verbose`): its trajectory, its last words, or a typed error.

An exit code says little, and standard error nothing: what went wrong stands in the last event, `result`, by fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import define, evolve, field, frozen
from skillopt_kernel.errors import ContextTooLong, ModelError, PassingError, PermanentError, RejectedRequest
from skillopt_kernel.records import Trajectory, Usage
from skillopt_kernel.store.redaction import Redactor

from skillopt_lib_agent.events import Events, count_of, text_of
from skillopt_lib_agent.failures import Program, failure, malformed, quoted
from skillopt_lib_agent.process import Finished
from skillopt_lib_agent.trajectory import TrajectoryBuilder, shortened

Ending = Literal["completed", "cut off", "refused", "turns used up", "wrong form"]

_SYNTHETIC = "<synthetic>"
_CUT_OFF = "utput token"
"""In what the program tells the model, and at last the user, when a reply came to its token limit."""

_NO_CREDIT = "redit balance"

LONGEST_NOTE = 1000


@frozen
class Told:
    """What one run of the program came to.

    ending      "completed"; or what the model itself is to blame for: "cut off" at its token limit, "refused", "turns
                used up", "wrong form" (never followed the schema)
    text        the answer: what was said after the last tool call, "" where that was nothing
    first       of a text that was cut off and gone on with: its part before the first cut; else the text
    structured  the object that follows the schema, if one was asked for and given
    """

    ending: Ending
    text: str
    first: str
    structured: Mapping[str, Any] | None
    trajectory: Trajectory
    usage: Usage


def read(events: Events, done: Finished, program: Program, redactor: Redactor) -> Told:
    """What the events say. Raises a typed `ModelError`, its `usage` set where it is known."""
    result = events.last("result")
    if result is None:
        raise _no_result(events, done, program, redactor)
    usage = usage_of(result)
    reading = _Reading(_denied(events))
    for event in events.items:
        reading.take(event)
    said = text_of(result.get("result")) or "; ".join(map(text_of, result.get("errors") or ()))
    ending = _ending(result, said, reading)
    if ending is None:
        error = _error(result, said, program, redactor)
        error.usage = evolve(usage, calls=1) if usage.prompt_tokens else None
        raise error
    structured = result.get("structured_output")
    text = said if ending == "completed" else "".join(reading.pieces)
    return Told(
        ending,
        text,
        reading.pieces[0] if reading.cut_off and reading.pieces else text,
        structured if isinstance(structured, Mapping) else None,
        reading.builder.turns,
        usage,
    )


def usage_of(result: Mapping[str, Any]) -> Usage:
    """Tokens and dollars of a result, over all its models and requests; all unknown where nothing was counted."""
    models = result.get("modelUsage")
    told = [each for each in models.values() if isinstance(each, Mapping)] if isinstance(models, Mapping) else []
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens", "thinkingTokens")
    if not told and isinstance(result.get("usage"), Mapping):
        told = [result["usage"]]
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens", "")
    fresh, read_again, written, completion, thought = (
        sum(count_of(each.get(name)) or 0 for each in told) for name in names
    )
    if not fresh + read_again + written + completion:
        return Usage(calls=1, unknown_calls=1)
    usd = result.get("total_cost_usd")
    return Usage(
        calls=1,
        prompt_tokens=fresh + read_again + written,
        completion_tokens=completion,
        cached_tokens=read_again,
        reasoning_tokens=thought or None,
        usd=float(usd) if isinstance(usd, int | float) and not isinstance(usd, bool) and usd > 0 else None,
    )


def _ending(result: Mapping[str, Any], said: str, reading: _Reading) -> Ending | None:
    """How it ended; `None`: in an error that is none of the model's doing."""
    subtype, reason = result.get("subtype"), result.get("terminal_reason")
    if result.get("stop_reason") == "refusal":
        return "refused"
    if reading.cut_off or result.get("stop_reason") == "max_tokens":
        return "cut off"
    if subtype == "error_max_turns" or reason == "max_turns":
        return "turns used up"
    if subtype == "error_max_structured_output_retries":
        return "wrong form"
    if not result.get("is_error"):
        return "completed"
    return "cut off" if _CUT_OFF in said and result.get("api_error_status") is None else None


def _no_result(events: Events, done: Finished, program: Program, redactor: Redactor) -> ModelError:
    said = done.stderr.strip()
    if done.code == 0 or not said:
        reason = f"no result, and exit code {done.code}"
        return malformed(program, reason, redactor, said or events.text)
    if said.startswith("error: "):  # of its arguments, which are the same for every call
        return PermanentError(
            f"{program.name} does not understand its arguments{quoted(said, redactor)}. Install a newer one: "
            f"`{program.upgrade}`."
        )
    return failure(program, said, redactor)


def _error(result: Mapping[str, Any], said: str, program: Program, redactor: Redactor) -> ModelError:
    status, reason = count_of(result.get("api_error_status")), result.get("terminal_reason")
    if status == 400 and _NO_CREDIT in said:
        status = None  # of the account, not of the request
    error = failure(program, said or text_of(reason), redactor, status)
    if reason == "prompt_too_long" and not isinstance(error, ContextTooLong):
        return ContextTooLong(str(error))
    if status is None and said.startswith("API Error") and isinstance(error, RejectedRequest):
        return PassingError(f"{program.name} could not read the endpoint's answer{quoted(said, redactor)}.")
    return error


def _denied(events: Events) -> frozenset[str]:
    """The ids of tool calls that were not permitted."""
    result = events.last("result") or {}
    denials = [each for each in result.get("permission_denials") or () if isinstance(each, Mapping)]
    denials += [event for event in events.items if event.get("subtype") == "permission_denied"]
    return frozenset(text_of(each.get("tool_use_id")) for each in denials)


@define
class _Reading:
    """Takes the events one by one.

    pieces   what was said since the last tool call, or since the program asked for something else
    cut_off  whether one of them came to its token limit; the program then has the model go on in a new message, and
             newer versions tell of that
    """

    _denials: frozenset[str]
    builder: TrajectoryBuilder = field(init=False, factory=TrajectoryBuilder)
    pieces: list[str] = field(init=False, factory=list)
    cut_off: bool = field(init=False, default=False)
    _message: str = field(init=False, default="")

    def take(self, event: Mapping[str, Any]) -> None:
        message = event.get("message")
        if event.get("type") not in ("assistant", "user") or not isinstance(message, Mapping):
            return
        if event.get("parent_tool_use_id") or message.get("model") == _SYNTHETIC or event.get("is_api_error_message"):
            return
        for block in _blocks(message.get("content")):
            if event["type"] == "assistant":
                self._said(block, text_of(message.get("id")))
            else:
                self._told(block)

    def _said(self, block: Mapping[str, Any], message: str) -> None:
        if block.get("type") == "text":
            self.cut_off = self.cut_off or bool(self.pieces and message != self._message)
            self._message = message
            self.pieces.append(text_of(block.get("text")))
            self.builder.said(self.pieces[-1])
        elif block.get("type") == "tool_use":
            self.pieces, self.cut_off = [], False
            name, id_ = text_of(block.get("name")), text_of(block.get("id"))
            given = block.get("input")
            self.builder.called(name, given if isinstance(given, Mapping) else text_of(given), id_)

    def _told(self, block: Mapping[str, Any]) -> None:
        if block.get("type") == "tool_result":
            id_ = text_of(block.get("tool_use_id"))
            output = "\n".join(_texts(block.get("content")))
            self.builder.returned(id_, output, denied=id_ in self._denials)
        elif block.get("type") == "text":  # the program's own word to the model
            text = text_of(block.get("text"))
            if _CUT_OFF in text:
                self.cut_off = True
            else:
                self.pieces = []
            self.builder.noted(shortened(text, LONGEST_NOTE))


def _blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping):
            yield block


def _texts(content: Any) -> Iterator[str]:
    for block in _blocks(content):
        yield text_of(block.get("text")) if block.get("type") == "text" else f"[{text_of(block.get('type'))}]"
