"""The DocVQA environment: a question about a scanned page, answered with a text that stands on it.

Mathew, Karatzas and Jawahar, "DocVQA: a dataset for VQA on document images", WACV 2021, arXiv 2007.00398; scored by
ANLS as the public evaluation scripts have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve
from skillopt_kernel.errors import DataError, EnvironmentFailure
from skillopt_kernel.models.requests import ImagePart
from skillopt_kernel.records import Attempt, Score, Splits, Task
from skillopt_kernel.splits import PARTS
from skillopt_lib_env.questions import about_form, ask
from skillopt_lib_env.split_loading import load_splits
from skillopt_lib_env.wording import one_line

from skillopt_env_docvqa.loading import PageCheck
from skillopt_env_docvqa.pages import Limits, Page, prepared
from skillopt_env_docvqa.prompts import FORM, question_text
from skillopt_env_docvqa.settings import DocVQASettings
from skillopt_env_docvqa.tasks import HOW_TO_MAKE_DATA, Places, task_of

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge, Scorer, Target

NAME = "docvqa"
UNSEEN = (
    "The target looked at the page as an image, which cannot be shown here. Whether it missed the place, took a "
    "neighbouring entry, misread it or worded it otherwise must be judged from question, reply and accepted answers."
)


class DocVQAEnvironment:
    """One instance serves all threads: it keeps nothing of an attempt."""

    targets = frozenset({"chat", "agent"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: DocVQASettings, context: DriverContext) -> None:
        if context.driver is None:
            raise ValueError("the docvqa environment needs a context that makes its scorer (context.driver)")
        self._settings = settings
        self._common = context.common
        self._logger = context.logger
        self._limits = Limits(settings.image_max_side, settings.image_max_bytes)
        self._scorer: Scorer = context.driver("scorer", "anls")

    def splits(self) -> Splits:
        """The splits of the configured folder or file, each page looked at. Raises `DataError`."""
        places = self._places()
        loaded = self._load(places)
        check = PageCheck(places, self._limits, refuse=self._settings.image_too_large == "refuse")
        checked = check(tuple(task for part in PARTS for task in getattr(loaded, part)))
        if check.changed:
            self._logger.warning("%s", check.warning)
        rest = iter(checked)
        return Splits(*(tuple(next(rest) for _ in getattr(loaded, part)) for part in PARTS))

    def save_splits(self, folder: Path) -> None:
        """Write what a split by ratio gave below `folder`, so that it can be used again as `split_dir`.

        It names each page by its absolute path, since it lies elsewhere than the data.
        """
        self._load(self._places(), folder)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        """Show the target the page and ask; an agent program finds the page as a file.

        Raises `EnvironmentFailure` for a page that is not as it was when the run began.
        """
        pages = {f"page_{n}": self._page(task, name) for n, name in enumerate(task.files, start=1)}
        files = {f"{name}{page.suffix}": page.data for name, page in pages.items()}
        as_files = target.kind == "agent"
        detail = self._settings.image_detail
        looked = "" if as_files or detail == "auto" else f"; looked at in {detail} detail"
        told = [page.told() + looked for page in pages.values()]
        for number, (name, page) in enumerate(zip(task.files, told, strict=True), start=1):
            target.note(f"Page {number}: {name}, {page}")
        attempt = ask(
            FORM,
            question_text(task.inputs["question"], list(files), as_files=as_files),
            skill,
            target,
            max_turns=self._settings.max_turns,
            max_tokens=self._settings.max_completion_tokens,
            images=[ImagePart(page.data, page.media_type, detail) for page in pages.values()],
            files=files,
        )
        return evolve(attempt, state={**attempt.state, "pages": told})

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        """soft: ANLS by the public scripts; hard: whether it is 1; the scorer's further scores by name."""
        score = self._scorer.score(attempt.output, task.reference, task, judge)
        feedback = " ".join(text for text in (score.feedback, about_form(attempt.state)) if text)
        return Score(score.hard, score.soft, feedback, score.named)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        """For analysts: the accepted answers, and what can be told of an image."""
        accepted = "\n".join(f"- {answer}" for answer in task.reference)
        told = attempt.state.get("pages") or [page["told"] for page in task.inputs.get("pages", ())]
        pages = "\n".join(f"- Page {number}: {page}" for number, page in enumerate(told, start=1))
        return {"Accepted answers": accepted, "The page": f"{pages}\n\n{UNSEEN}".strip()}

    def describe(self, task: Task) -> str:
        """The question on one line, shortened."""
        return one_line(str(task.inputs.get("question", "")))

    def initial_skill(self) -> str:
        """The skill that training starts from when `env.skill_init` names none."""
        from importlib.resources import files

        return files("skillopt_env_docvqa").joinpath("initial_skill.md").read_text("utf-8")

    def _places(self) -> Places:
        folder = self._common.split_dir if self._common.split_mode == "split_dir" else None
        return Places(self._settings.image_root, folder, Path.cwd())

    def _load(self, places: Places, folder: Path | None = None) -> Splits:
        reading: dict[str, Any] = {"name": NAME, "folder": folder, "cure": HOW_TO_MAKE_DATA, "read": places.read}
        return load_splits(self._common, task_of, **reading)

    def _page(self, task: Task, name: str) -> Page:
        try:
            page = prepared(Path(task.files[name]), self._limits)
        except DataError as error:
            raise EnvironmentFailure(str(error)) from error
        known = {each["name"]: each["sha256"] for each in task.inputs.get("pages", ())}
        if known.get(name, page.facts.sha256) != page.facts.sha256:
            raise EnvironmentFailure(
                f"the page {task.files[name]} is not as it was when the run began; put the earlier file back."
            )
        return page
