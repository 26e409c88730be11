"""The SearchQA environment: a trivia clue with search results, answered in few words.

Dunn et al., "SearchQA: a new Q&A dataset augmented with context from a search engine", arXiv 1704.05179; scored
as the MRQA 2019 shared task does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillopt_kernel.models.requests import AgentJob, Message
from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_kernel.store.patterns import clipped
from skillopt_lib_env.answers import AnswerText, last_answer, last_line
from skillopt_lib_env.documents import documents, truncated_documents
from skillopt_lib_env.normalise import squad_normalised
from skillopt_lib_env.split_loading import load_splits

from skillopt_env_searchqa.prompts import CHECK_AGAIN, agent_prompt, system_prompt, user_prompt
from skillopt_env_searchqa.settings import SearchQASettings
from skillopt_env_searchqa.tasks import HOW_TO_MAKE_DATA, task_of

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge, Scorer, Target
    from skillopt_kernel.models.requests import ChatReply

FORM_PROBLEMS = {
    "unclosed": "The answer tag was opened and not closed, so the whole last line was taken as the answer.",
    "no_tag": "The reply had no answer tags, so its last line was taken as the answer.",
    "empty": "The reply had no text beside its reasoning.",
}
LONGEST_SNIPPET = 240
LONGEST_DESCRIPTION = 100


class SearchQAEnvironment:
    """One instance serves all threads: it keeps nothing of an attempt."""

    targets = frozenset({"chat", "agent"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: SearchQASettings, context: DriverContext) -> None:
        if context.driver is None:
            raise ValueError("the searchqa environment needs a context that makes its scorer (context.driver)")
        self._settings = settings
        self._common = context.common
        self._scorer: Scorer = context.driver("scorer", "token_f1")

    def splits(self) -> Splits:
        """The splits of the configured folder or file. Raises `DataError`."""
        return load_splits(self._common, task_of, name="searchqa", cure=HOW_TO_MAKE_DATA)

    def save_splits(self, folder: Path) -> None:
        """Write what a split by ratio gave below `folder`, so that it can be used again as `split_dir`."""
        load_splits(self._common, task_of, name="searchqa", folder=folder)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        """Ask the target, then up to `max_turns - 1` times to check its answer, until such a reply has tags.

        An agent program gets one job, in which it looks and checks as it likes.
        """
        if target.kind == "agent":
            return self._attempt_as_job(task, skill, target)
        messages = [
            Message("system", system_prompt(skill)),
            Message("user", user_prompt(task.inputs["question"], self._shown_context(task))),
        ]
        answer, reply = self._ask(target, messages)
        ended = _ending(answer, reply)
        turns_left = self._settings.max_turns - 1 if ended is None else 0
        latest = reply
        for _ in range(turns_left):
            messages += [Message("assistant", latest.text), Message("user", CHECK_AGAIN)]
            checked, latest = self._ask(target, messages)
            if checked.found or (not answer.found and checked.text):
                answer, reply = checked, latest
            if checked.found or _ending(checked, latest):  # a check that fails leaves what was answered standing
                break
        state = {"reason": answer.reason, "cut_off": reply.finish == "length"}
        return Attempt(answer.text, trajectory=target.trajectory, state=state, ended=ended)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """hard: official exact match; soft: official token F1; the scorer's further scores by name."""
        score = self._scorer.score(attempt.output, task.reference, task, judge)
        notes = [FORM_PROBLEMS.get(attempt.state.get("reason", ""), "")]
        if attempt.state.get("cut_off"):
            notes.append("The reply was cut off at the token limit.")
        feedback = " ".join(text for text in (score.feedback, *notes) if text)
        return Score(score.hard, score.soft, feedback, score.named)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: the accepted answers, and where the context that the target saw names one."""
        accepted = "\n".join(f"- {answer}" for answer in task.reference)
        return {"Accepted answers": accepted, "In the context": self._where_answered(task)}

    def describe(self, task: Task) -> str:
        """The question on one line, shortened."""
        line = " ".join(str(task.inputs.get("question", "")).split())
        return line if len(line) <= LONGEST_DESCRIPTION else clipped(line, LONGEST_DESCRIPTION - 3) + "..."

    def initial_skill(self) -> str:
        """The skill that training starts from when `env.skill_init` names none."""
        from importlib.resources import files

        return files("skillopt_env_searchqa").joinpath("initial_skill.md").read_text("utf-8")

    def _ask(self, target: Target, messages: list[Message]) -> tuple[AnswerText, ChatReply]:
        reply = target.chat(messages, max_tokens=self._settings.max_completion_tokens)
        return _answer_in(reply.text), reply

    def _attempt_as_job(self, task: Task, skill: str, target: Target) -> Attempt:
        prompt = agent_prompt(task.inputs["question"], self._shown_context(task))
        answer = _answer_in(target.agent(AgentJob(prompt, skill)).message)
        ended = None if answer.text else "empty_answer"
        return Attempt(answer.text, target.trajectory, {"reason": answer.reason}, ended=ended)

    def _shown_context(self, task: Task) -> str:
        return truncated_documents(task.inputs.get("context", ""), self._settings.context_limit)

    def _where_answered(self, task: Task) -> str:
        shown = self._shown_context(task)
        if not shown.strip():
            return "The task has no context."
        pieces = documents(shown)
        for number, piece in enumerate(pieces, start=1):
            for answer in task.reference:
                if _names(piece, answer):
                    return f"Document {number} of {len(pieces)} names {answer!r}: {_snippet(piece, answer)}"
        cut = ", which was cut to its length limit" if shown != task.inputs.get("context", "") else ""
        return f"No document of the context{cut} names an accepted answer."


def _answer_in(text: str) -> AnswerText:
    answer = last_answer(text)
    if answer.reason == "unclosed":
        # Scored as the benchmark's scripts would: without a complete pair, the last line is the answer.
        return AnswerText(last_line(text), False, "unclosed")
    return answer


def _ending(answer: AnswerText, reply: ChatReply) -> str | None:
    if reply.finish == "filtered":
        return "refused"
    return None if answer.text else "empty_answer"


def _names(text: str, answer: str) -> bool:
    wanted = squad_normalised(answer)
    return bool(wanted) and f" {wanted} " in f" {squad_normalised(text)} "


def _snippet(text: str, answer: str) -> str:
    """The text around the answer, on one line."""
    line = " ".join(text.split())
    at = max(0, line.lower().find(answer.lower()) - LONGEST_SNIPPET // 2)
    return ("..." if at else "") + line[at : at + LONGEST_SNIPPET] + ("..." if at + LONGEST_SNIPPET < len(line) else "")
