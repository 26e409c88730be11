"""The environment `tasks`: a user's own tasks, asked with a prompt, scored by a scorer of choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import evolve
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.answers import last_answer, whole_reply
from skillopt_lib_env.questions import about_form, ask
from skillopt_lib_env.ratio_split import write_splits
from skillopt_lib_env.scoring import only_shape
from skillopt_lib_env.split_loading import split_folder
from skillopt_lib_env.wording import one_line

from skillopt_env_tasks import feedback
from skillopt_env_tasks.loading import Loaded, load
from skillopt_env_tasks.prompts import FORMS
from skillopt_env_tasks.settings import TasksSettings
from skillopt_env_tasks.template import as_text, filled, under_headings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Finding, Judge, Scorer, Target


class TasksEnvironment:
    """One instance serves all threads: it keeps nothing of an attempt, and of its data what the summary tells."""

    targets = frozenset({"chat", "agent"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: TasksSettings, context: DriverContext) -> None:
        self._settings = settings
        self._common = context.common
        self._logger = context.logger
        self._scorer: Scorer = settings.scorer.make(context)
        self._seen = ""
        self._comments = feedback.read_feedback(settings.feedback) if settings.feedback else ()

    @property
    def further_data(self) -> str:
        """What besides the tasks can change a result: the comments of people. Part of a run's fingerprint."""
        return feedback.content_hash(self._comments) if self._comments else ""

    def splits(self) -> Splits:
        """The splits of the configured data; warnings about them are logged. Raises `DataError` or `ConfigError`."""
        loaded = self._load()
        self._seen = self._shape(loaded)
        for warning in self._warnings(loaded):
            self._logger.warning("Warning: %s", warning)
        return Splits(*(tuple(row.task for row in loaded.parts[part]) for part in PARTS))

    def check(self) -> list[Finding]:
        """What a user should know of the data and of what scores can show. Data of no use is told by `splits`."""
        try:
            return [("warning", warning) for warning in self._warnings(self._load())]
        except SkillOptError:
            return []

    def notes(self) -> tuple[str, ...]:
        """For the summary and the report: what scores cannot show."""
        return (f"{self._seen[:1].upper()}{self._seen[1:]}",) if self._seen else ()

    def save_splits(self, folder: Path) -> None:
        """Write what a split by ratio gave below `folder`, so that it can be used again as `split_dir`."""
        loaded, common = self._load(), self._common
        target = split_folder(common, "tasks", folder)
        if target is None or not loaded.by_ratio:
            return
        fields = {part: [row.item.fields for row in loaded.parts[part]] for part in PARTS}
        write_splits(target, fields, source=loaded.where, ratio=common.split_ratio, seed=common.split_seed)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        """Ask the target once; an agent program gets one job, and the skill where it looks for it."""
        answer = self._settings.answer
        attempt = ask(
            FORMS[answer],
            f"## Task\n\n{self._asked(task).strip()}" if target.kind == "agent" else self._asked(task),
            skill,
            target,
            max_tokens=self._settings.max_completion_tokens,
            read=last_answer if answer == "tags" else whole_reply,
        )
        return evolve(attempt, state={**attempt.state, "version": skill_hash(skill)})

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """What the scorer says of the answer, with what was wrong with the reply's form."""
        score = self._scorer.score(attempt.output, task.reference, task, judge)
        told = " ".join(text for text in (score.feedback, about_form(attempt.state)) if text)
        return Score(score.hard, score.soft, told, score.named)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: what is right, and what people said of outputs for this task."""
        version, scope = attempt.state.get("version", ""), self._settings.feedback_scope
        return {
            "Reference": as_text(task.reference),
            "Human feedback": feedback.told(self._comments, task.id, version, scope),
        }

    def describe(self, task: Task) -> str:
        """The first input on one line, shortened."""
        return one_line(next((text for text in map(as_text, task.inputs.values()) if text.strip()), ""))

    def initial_skill(self) -> str:
        """The skill that training starts from when none is given."""
        from importlib.resources import files

        return files("skillopt_env_tasks").joinpath("initial_skill.md").read_text("utf-8")

    def _load(self) -> Loaded:
        return load(self._settings, self._common, self._scorer)

    def _warnings(self, loaded: Loaded) -> list[str]:
        shape = self._shape(loaded)
        return [*loaded.warnings(self._comments), *([shape] if shape else [])]

    def _shape(self, loaded: Loaded) -> str:
        return only_shape(self._scorer, [row.task for row in loaded.parts["train"]])

    def _asked(self, task: Task) -> str:
        template = self._settings.prompt
        return filled(template, task.inputs) if template.strip() else under_headings(task.inputs)
