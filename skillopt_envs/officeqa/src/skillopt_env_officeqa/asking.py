"""One attempt as a conversation: a bounded loop in which the target looks, is answered, and must answer at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from skillopt_kernel.models.requests import AgentJob, Message, Tool
from skillopt_kernel.records import Attempt
from skillopt_lib_env.answers import AnswerText, last_answer

from skillopt_env_officeqa.prompts import LAST_TURN, REMINDER
from skillopt_env_officeqa.queries import search_queries
from skillopt_env_officeqa.scoring import earlier_answer

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Target
    from skillopt_kernel.models.requests import ChatReply


@frozen
class Looking:
    """How a target may look.

    step, closed  what a step is called, and what is said of it before the last turn
    follow        the messages that answer a reply's step; none where it takes none
    tools         what a chat model may call
    """

    step: str
    closed: str
    follow: Callable[[ChatReply, Target], Sequence[Message]]
    tools: tuple[Tool, ...] = field(factory=tuple)


def converse(
    messages: list[Message], target: Target, looking: Looking | None, *, max_turns: int, max_tokens: int
) -> Attempt:
    """Ask until a reply has an answer between tags, at most `max_turns` times; the last time nothing can be looked up.

    A reply that neither looks nor answers is reminded once. `looking` `None`: there is one turn, which must answer.
    """
    turns, reminded = (max_turns if looking else 1), False
    for turn in range(1, turns + 1):
        last = turn == turns
        if last and looking and turns > 1:
            messages.append(Message("user", LAST_TURN.format(closed=looking.closed)))
        reply = _asked(messages, target, looking, max_tokens, last=last)
        answer = last_answer(reply.text)
        if last or looking is None or answer.found or reply.finish == "filtered":
            break
        followed = looking.follow(reply, target)
        messages.append(Message("assistant", reply.text, reply.tool_calls))
        if not followed and reminded:
            break
        reminded = not followed
        messages += followed or [Message("user", REMINDER.format(step=looking.step))]
    looked = bool(looking and last and not answer.found and looking.tools and reply.tool_calls)
    return _attempt(reply, answer, target, looked=looked or bool(search_queries(reply.text) and not answer.found))


def run_job(prompt: str, skill: str, files: dict[str, Any], target: Target, max_turns: int) -> Attempt:
    """Have an agent program look by itself, in files that are laid into its workspace."""
    message = target.agent(AgentJob(prompt, skill, files, max_turns=max_turns)).message
    answer = last_answer(message)
    ended = None if answer.text else "empty_answer"
    return Attempt(answer.text, target.trajectory, _state(answer, message), ended=ended)


def _asked(
    messages: list[Message], target: Target, looking: Looking | None, max_tokens: int, *, last: bool
) -> ChatReply:
    if looking is None or not looking.tools:
        return target.chat(messages, max_tokens=max_tokens)
    # The last turn names the tools too: endpoints refuse a conversation with calls of tools that they do not know.
    choice = "none" if last else "auto"
    return target.chat(messages, tools=looking.tools, tool_choice=choice, max_tokens=max_tokens)


def _attempt(reply: ChatReply, answer: AnswerText, target: Target, *, looked: bool) -> Attempt:
    state = {**_state(answer, reply.text), "cut_off": reply.finish == "length"}
    if reply.finish == "filtered":
        return Attempt("", target.trajectory, state, ended="refused")
    if looked:
        return Attempt("", target.trajectory, {**state, "reason": "looked"}, ended="max_turns")
    return Attempt(answer.text, target.trajectory, state, ended=None if answer.text else "empty_answer")


def _state(answer: AnswerText, reply: str) -> dict[str, Any]:
    return {"reason": answer.reason, "earlier": earlier_answer(reply) if "<answer" in reply.lower() else ""}
