"""A question put to the target: to a chat model in one turn or several, to an agent program as one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen
from skillopt_kernel.models.requests import AgentJob, ImagePart, Message, Part, TextPart
from skillopt_kernel.records import Attempt

from skillopt_lib_env.answers import AnswerText, last_answer, last_line

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Target
    from skillopt_kernel.models.requests import ChatReply

Reader = Callable[[str], AnswerText]
"""Reads the answer in a reply."""

FORM_PROBLEMS = {
    "unclosed": "The answer tag was opened and not closed; what followed it was taken as the answer.",
    "unclosed_line": "The answer tag was opened and not closed, so the whole last line was taken as the answer.",
    "no_tag": "The reply had no answer tags, so its last line was taken as the answer.",
    "empty": "The reply had no text beside its reasoning.",
}
"""What was wrong with a reply's form, by the reason why no complete pair of tags held an answer."""


@frozen
class Form:
    """What the target is told beside the question: its role, what the task is, how to answer, how to check that."""

    role: str
    task: str
    answer: str
    check: str

    def system(self, skill: str) -> str:
        """A chat model's system prompt: role, the skill under its own heading (left out when blank), task, answer."""
        told = f"## Skill\n\n{skill.strip()}" if skill.strip() else ""
        return "\n\n".join(part for part in (self.role, told, self.task, self.answer) if part)

    def job(self, question: str) -> str:
        """An agent program's prompt; the skill lies where the program looks for it."""
        return "\n\n".join(part for part in (self.role, self.task, self.answer, question) if part)


def answer_or_last_line(reply: str) -> AnswerText:
    """The last complete pair of answer tags, as scripts of benchmarks read it: without one, the last line."""
    answer = last_answer(reply)
    return AnswerText(last_line(reply), False, "unclosed_line") if answer.reason == "unclosed" else answer


def ask(
    form: Form,
    question: str,
    skill: str,
    target: Target,
    *,
    max_turns: int = 1,
    max_tokens: int | None = None,
    read: Reader = answer_or_last_line,
    images: Sequence[ImagePart] = (),
    files: Mapping[str, bytes] | None = None,
) -> Attempt:
    """Ask the target, then up to `max_turns - 1` times to check its answer, until such a reply has tags.

    images  shown to a chat model after the question
    files   laid into an agent program's workspace, by relative path; the question tells it of them

    An agent program gets one job, in which it looks and checks as it likes. The attempt's state has `reason` (why no
    pair of tags held the answer) and, of a chat model, `cut_off` (whether the reply ended at the token limit).
    """
    if target.kind == "agent":
        answer = read(target.agent(AgentJob(form.job(question), skill, files or {})).message)
        ended = None if answer.text else "empty_answer"
        return Attempt(answer.text, target.trajectory, {"reason": answer.reason}, ended=ended)
    content: str | tuple[Part, ...] = (TextPart(question), *images) if images else question
    messages = [Message("system", form.system(skill)), Message("user", content)]
    reply = target.chat(messages, max_tokens=max_tokens)
    answer = read(reply.text)
    ended = _ending(answer, reply)
    latest = reply
    for _ in range(max_turns - 1 if ended is None else 0):
        messages += [Message("assistant", latest.text), Message("user", form.check)]
        latest = target.chat(messages, max_tokens=max_tokens)
        checked = read(latest.text)
        if checked.found or (not answer.found and checked.text):
            answer, reply = checked, latest
        if checked.found or _ending(checked, latest):  # a check that fails leaves what was answered standing
            break
    state = {"reason": answer.reason, "cut_off": reply.finish == "length"}
    return Attempt(answer.text, target.trajectory, state, ended=ended)


def about_form(state: Mapping[str, object]) -> str:
    """For a score's feedback: what was wrong with the reply's form, in sentences; "" where nothing was."""
    cut = "The reply was cut off at the token limit." if state.get("cut_off") else ""
    return " ".join(filter(None, (FORM_PROBLEMS.get(str(state.get("reason", "")), ""), cut)))


def _ending(answer: AnswerText, reply: ChatReply) -> str | None:
    if reply.finish == "filtered":
        return "refused"
    return None if answer.text else "empty_answer"
