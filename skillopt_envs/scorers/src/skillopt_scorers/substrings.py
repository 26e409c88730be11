"""The scorer `contains`: what must stand in the answer."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from skillopt_kernel.records import Score

from skillopt_scorers.accepted import accepted_answers, named, quoted, same_for_all
from skillopt_scorers.exact_match import without_invisible
from skillopt_scorers.settings import ContainsSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


class ContainsScorer:
    """hard = whether the answer contains any text of the reference, or all of them; soft = the share it contains.

    With `require: any`, soft is hard. Blanks are compared as single spaces. It looks at the wording alone: where the
    same text is asked of every task, a skill can learn to say it and nothing else.
    """

    def __init__(self, settings: ContainsSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or ContainsSettings()

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is no text or list of texts, or holds a blank one."""
        wanted = accepted_answers(reference)
        if not wanted or not all(map(self._plain, wanted)):
            raise ValueError("what an answer must contain is empty, so that every answer or none would be right")

    def shape_only(self, tasks: Sequence[Task]) -> str:
        """What it looks for in every answer, where that is the same for all tasks; else ""."""
        wanted = same_for_all(tasks)
        return f"for the same text in the answer, {wanted}" if wanted else ""

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Look for a reference of one text or a list. Raises as `check`."""
        self.check(reference, task)
        wanted = accepted_answers(reference)
        text = self._plain(answer)
        lacking = [each for each in wanted if not self._stands(self._plain(each), text)]
        every = self._settings.require == "all"
        right = not lacking if every else len(lacking) < len(wanted)
        if right:
            return Score(1.0, 1.0, "Right.")
        soft = 1 - len(lacking) / len(wanted) if every else 0.0
        answered = f"answered {quoted(answer)}" if answer.strip() else "there is no answer"
        # "or" would be untrue where all are asked for.
        shown = " and ".join(map(quoted, lacking[:5])) if every else named(lacking)
        return Score(0.0, soft, f"Wrong: {answered}; it lacks {shown}.")

    def _plain(self, text: str) -> str:
        text = " ".join(unicodedata.normalize("NFC", without_invisible(text)).split())
        return text.casefold() if self._settings.ignore_case else text

    def _stands(self, wanted: str, text: str) -> bool:
        place = text.find(wanted)
        while place >= 0:
            end = place + len(wanted)
            before, after = text[max(0, place - 1) : place], text[end : end + 1]
            if not self._settings.whole_words or not (before.isalnum() or after.isalnum()):
                return True
            place = text.find(wanted, place + 1)
        return False
