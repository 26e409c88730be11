"""The LiveMathematicianBench environment: multiple choice about theorems of recent papers.

"LiveMathematicianBench", arXiv 2604.01754; scored by the label, as its site reports accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.answers import last_answer
from skillopt_lib_env.data_files import Item
from skillopt_lib_env.questions import about_form, ask
from skillopt_lib_env.split_loading import load_splits
from skillopt_lib_env.wording import one_line

from skillopt_env_livemathematicianbench.answers import chosen, earlier_label
from skillopt_env_livemathematicianbench.files import read_questions
from skillopt_env_livemathematicianbench.prompts import FORM, question_text
from skillopt_env_livemathematicianbench.questions import (
    HOW_TO_MAKE_DATA,
    STOCK_OPTION,
    Choice,
    is_stock_option,
    question_of,
    shuffled,
)
from skillopt_env_livemathematicianbench.settings import LiveMathematicianBenchSettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge, Target

NAME = "livemathematicianbench"
DEFAULT_KIND = "math_mcq"
LONGEST_QUOTED = 200


class LiveMathematicianBenchEnvironment:
    """One instance serves all threads: it keeps nothing of an attempt."""

    targets = frozenset({"chat", "agent"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: LiveMathematicianBenchSettings, context: DriverContext) -> None:
        self._settings = settings
        self._common = context.common
        self._seed = context.seed
        self._logger = context.logger

    def splits(self) -> Splits:
        """The splits of the configured folder, or of the benchmark's raw files. Raises `DataError`."""
        splits = self._load()
        self._warn(splits)
        return splits

    def save_splits(self, folder: Path) -> None:
        """Write what a split by ratio gave below `folder`, so that it can be used again as `split_dir`."""
        self._load(folder)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        """Ask for the label of the right choice."""
        return ask(
            FORM,
            question_text(task.inputs),
            skill,
            target,
            max_turns=self._settings.max_turns,
            max_tokens=self._settings.max_completion_tokens,
        )

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """hard = soft = whether the answer names the right choice; `reference_accuracy`: by earlier trainers' rule."""
        choices = choices_of(task)
        right = next(choice for choice in choices if choice.label == task.reference["label"])
        unclosed = attempt.state.get("reason") == "unclosed_line"
        found = chosen(last_answer(attempt.output).text if unclosed else attempt.output, choices)
        hard = float(found == right)
        earlier = {"reference_accuracy": float(earlier_label(attempt.output, choices) == right.label)}
        feedback = " ".join(filter(None, [_feedback(attempt.output, found, right), about_form(attempt.state)]))
        return Score(hard, hard, feedback, earlier)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: the right choice, and the theorem with its sketch, where the target was not shown them."""
        sections = {"Right choice": f"{task.reference['label']}. {task.reference['text']}"}
        for name, heading in (("theorem", "Theorem"), ("sketch", "Sketch of the proof")):
            if task.reference.get(name):
                sections[heading] = task.reference[name]
        return sections

    def describe(self, task: Task) -> str:
        """The question on one line, shortened."""
        return one_line(str(task.inputs.get("question", "")))

    def initial_skill(self) -> str:
        """The skill that training starts from when `env.skill_init` names none."""
        from importlib.resources import files

        return files("skillopt_env_livemathematicianbench").joinpath("initial_skill.md").read_text("utf-8")

    def _load(self, folder: Path | None = None) -> Splits:
        return load_splits(
            self._common,
            self._task,
            name=NAME,
            folder=folder,
            cure=HOW_TO_MAKE_DATA,
            read=read_questions,
            find=lambda path: path,
        )

    def _task(self, item: Item) -> Task | None:
        question = question_of(item)
        if self._settings.clean_items and question.has_stock_option:
            return None
        if self._settings.shuffle_choices:
            question = shuffled(question, self._seed)
        shown = {"theorem": self._settings.use_theorem, "sketch": self._settings.use_sketch}
        told = {name: getattr(question, name) for name in shown}
        choices = [{"label": choice.label, "text": choice.text} for choice in question.choices]
        return Task(
            id=question.id,
            kind=question.kinds[0] if question.kinds else DEFAULT_KIND,
            inputs={
                "question": question.question,
                "choices": choices,
                **{name: text for name, text in told.items() if shown[name]},
            },
            reference={
                "label": question.right,
                "text": question.right_text,
                **{name: text for name, text in told.items() if not shown[name]},
            },
        )

    def _warn(self, splits: Splits) -> None:
        """Of what a skill could learn in place of the mathematics."""
        tasks = [task for part in PARTS for task in getattr(splits, part)]
        stock = [(task.reference["label"], label) for task in tasks if (label := _stock_label(task))]
        if stock:
            right = sum(one == other for one, other in stock)
            often = f"all {right}" if right == len(stock) else f"{right}"
            self._logger.warning(
                f'{len(stock)} of the {len(tasks)} questions offer "{STOCK_OPTION}", right in {often} of them. '
                f"A skill can learn this in place of the mathematics; env.clean_items: true leaves these questions out."
            )
        labels = {task.reference["label"] for task in tasks}
        if not self._settings.shuffle_choices and len(labels) == 1 and len(tasks) > 1:
            self._logger.warning(
                f"env.shuffle_choices is false, and the right choice is {labels.pop()} in all {len(tasks)} questions: "
                f"a skill can learn this in place of the mathematics."
            )


def choices_of(task: Task) -> Sequence[Choice]:
    """The choices as the target saw them."""
    return [Choice(choice["label"], choice["text"]) for choice in task.inputs["choices"]]


def _stock_label(task: Task) -> str | None:
    """The label of the stock option, where the task offers it."""
    return next((choice.label for choice in choices_of(task) if is_stock_option(choice)), None)


def _feedback(answer: str, found: Choice | None, right: Choice) -> str:
    if found == right:
        return "Right."
    wanted = f"right: {right.label} ({_quoted(right.text)})"
    if not answer.strip():
        return f"Wrong: there is no answer; {wanted}."
    if found is None:
        return f"Wrong: {_quoted(answer)} names no single choice, by its label or its text; {wanted}."
    return f"Wrong: chose {found.label} ({_quoted(found.text)}); {wanted}."


def _quoted(text: str) -> str:
    return f'"{one_line(text, LONGEST_QUOTED)}"'
