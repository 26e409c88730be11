"""The SearchQA environment: a trivia clue with search results, answered in few words.

Dunn et al., "SearchQA: a new Q&A dataset augmented with context from a search engine", arXiv 1704.05179; scored
as the MRQA 2019 shared task does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_lib_env.documents import documents, truncated_documents
from skillopt_lib_env.normalise import squad_normalised
from skillopt_lib_env.questions import about_form, ask
from skillopt_lib_env.split_loading import load_splits
from skillopt_lib_env.wording import one_line

from skillopt_env_searchqa.prompts import FORM, question_text
from skillopt_env_searchqa.settings import SearchQASettings
from skillopt_env_searchqa.tasks import HOW_TO_MAKE_DATA, task_of

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge, Scorer, Target

LONGEST_SNIPPET = 240


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
        """Ask for the answer to the clue; see `skillopt_lib_env.questions.ask`."""
        return ask(
            FORM,
            question_text(task.inputs["question"], self._shown_context(task)),
            skill,
            target,
            max_turns=self._settings.max_turns,
            max_tokens=self._settings.max_completion_tokens,
        )

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """hard: official exact match; soft: official token F1; the scorer's further scores by name."""
        score = self._scorer.score(attempt.output, task.reference, task, judge)
        feedback = " ".join(filter(None, (score.feedback, about_form(attempt.state))))
        return Score(score.hard, score.soft, feedback, score.named)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: the accepted answers, and where the context that the target saw names one."""
        accepted = "\n".join(f"- {answer}" for answer in task.reference)
        return {"Accepted answers": accepted, "In the context": self._where_answered(task)}

    def describe(self, task: Task) -> str:
        """The question on one line, shortened."""
        return one_line(str(task.inputs.get("question", "")))

    def initial_skill(self) -> str:
        """The skill that training starts from when `env.skill_init` names none."""
        from importlib.resources import files

        return files("skillopt_env_searchqa").joinpath("initial_skill.md").read_text("utf-8")

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


def _names(text: str, answer: str) -> bool:
    wanted = squad_normalised(answer)
    return bool(wanted) and f" {wanted} " in f" {squad_normalised(text)} "


def _snippet(text: str, answer: str) -> str:
    """The text around the answer, on one line."""
    line = " ".join(text.split())
    at = max(0, line.lower().find(answer.lower()) - LONGEST_SNIPPET // 2)
    return ("..." if at else "") + line[at : at + LONGEST_SNIPPET] + ("..." if at + LONGEST_SNIPPET < len(line) else "")
