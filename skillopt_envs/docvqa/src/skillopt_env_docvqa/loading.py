"""The pages of a run's tasks, looked at before it begins: are they there, are they images, are they too large?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_lib_env.wording import few_of

from skillopt_env_docvqa.pages import SENT_AS_STORED, Limits, PageFacts, page_facts
from skillopt_env_docvqa.tasks import Places, missing_pages


@define
class PageCheck:
    """Checks the pages of tasks and adds to each task what is known of its pages, their digests above all.

    refuse   whether a page beyond a limit is an error, or is made smaller when it is sent
    changed  pages that are not sent as they are stored, with why, once each; too_large: those beyond a limit
    """

    places: Places
    limits: Limits
    refuse: bool = field(kw_only=True)
    changed: list[str] = field(init=False, factory=list)
    too_large: list[str] = field(init=False, factory=list)
    _known: dict[str, PageFacts] = field(init=False, factory=dict)

    def __call__(self, tasks: Sequence[Task]) -> tuple[Task, ...]:
        """The tasks with the input `pages`: name, digest and description of each. Raises `DataError`."""
        absent = missing_pages(tasks, self.places)
        if absent is not None:
            raise absent
        checked = tuple(self._with_pages(task) for task in tasks)
        if self.refuse and self.too_large:
            raise DataError(
                f"{self._counted(self.too_large)}, and env.image_too_large is 'refuse': {few_of(self.too_large)}. "
                f"Store them smaller, or let them be sent smaller: `-o env.image_too_large=shrink`."
            )
        return checked

    @property
    def warning(self) -> str:
        """What is done to pages that are not sent as they are stored."""
        return (
            f"{self._counted(self.changed)}: {few_of(self.changed)}. Pages beyond env.image_max_side or "
            f"env.image_max_bytes are scaled down or sent as JPEG, other formats than {', '.join(SENT_AS_STORED)} as "
            f"PNG, turned ones upright, of several pictures the first; the analysts are told."
        )

    def _with_pages(self, task: Task) -> Task:
        pages = [self._page(name, path, task) for name, path in task.files.items()]
        return evolve(task, inputs={**task.inputs, "pages": pages})

    def _page(self, name: str, path: str, task: Task) -> dict[str, Any]:
        facts = self._known.get(path)
        if facts is None:
            try:
                facts = self._known[path] = page_facts(Path(path))
            except DataError as error:
                raise DataError(f"task {task.id}: {error}") from error
            self._note(path, facts)
        return {"name": name, "sha256": facts.sha256, "told": facts.told()}

    def _note(self, path: str, facts: PageFacts) -> None:
        if unfit := facts.unfit(self.limits):
            self.changed.append(f"{path} ({unfit})")
        if facts.beyond(self.limits):
            self.too_large.append(self.changed[-1])

    def _counted(self, pages: Sequence[str]) -> str:
        verb = "is" if len(pages) == 1 else "are"
        return f"{len(pages)} of {len(self._known)} page images {verb} not sent as stored"
