"""The backend: a call is answered from its file, or becomes one and is pending."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from attrs import define, field
from skillopt_kernel.errors import ConfigError, Pending, PermanentError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.models.roles import ROLES
from skillopt_kernel.store.files import make_folder, writing

from skillopt_backend_handoff.answer import Unusable, structured_reply, text_reply
from skillopt_backend_handoff.question import STRUCTURED, TEXT, Question, read_if_there

FOLDER, ANSWERED, ASIDE = "handoff", "answered", "set_aside"
"""The folder in the run directory; those in it for what was answered and taken, and for what is not asked any more."""

READERS = {TEXT: text_reply, STRUCTURED: structured_reply}
MOST_NAMED = 10


def make_backend(settings: Any, context: DriverContext) -> HandoffBackend:
    """The backend of one role."""
    return HandoffBackend(context.model or "handoff")


@define(eq=False)
class HandoffBackend:
    """Implements `Backend`: each role as a chat model that somebody else plays. Used from many threads at once.

    folder    where the questions lie, `None` outside a run
    reading   held while an answer is looked for and moved: two calls may be the same where nothing names them
    """

    model: str
    folder: Path | None = None
    tells = frozenset[str]()
    reading: Any = field(init=False, factory=threading.Lock)
    _open: dict[str, tuple[str, str]] = field(init=False, factory=dict)
    _asked: set[str] = field(init=False, factory=set)
    _roles: set[str] = field(init=False, factory=set)
    _lock: Any = field(init=False, factory=threading.Lock)

    @property
    def capabilities(self) -> Mapping[str, frozenset[str]]:
        return dict.fromkeys(ROLES, frozenset({"chat"}))

    def enter(self, folder: Path) -> None:
        """Told by the kernel where the run is."""
        self.folder = folder / FOLDER

    def open_chat(self, role: str) -> HandoffModel:
        if role not in ROLES:
            raise ConfigError(f"the backend handoff plays {', '.join(ROLES)}, not {role!r}.")
        self._roles.add(role)
        return HandoffModel(self.model, role, self)

    def open_agent(self, role: str) -> NoReturn:
        raise ConfigError("the backend handoff is a chat model and runs no agent's job; name an agent backend.")

    def endpoint(self, role: str) -> str:
        return "handoff"

    def check(self, role: str) -> list[Finding]:
        return [("ok", f"calls become files in the folder {FOLDER} of the run directory and wait for their answers")]

    def noted(self, question: Question, problem: str | None) -> None:
        """What became of a call; `problem`: it is open, and this is wrong with its answer, "" where there is none."""
        with self._lock:
            self._asked.add(question.name)
            if problem is None:
                self._open.pop(question.name, None)
            else:
                self._open[question.name] = (question.role, problem)

    def waiting(self) -> str:
        """How many calls are open where, and what is wrong with answers; questions that were not asked go aside."""
        with self._lock:
            left_over = list(self._left_over())
            if not self._open:
                return ""
            roles = sorted({role for role, _ in self._open.values()})
            count = f"{len(self._open)} call{'s wait for answers' if len(self._open) > 1 else ' waits for its answer'}"
            lines = [
                f"{' and '.join(roles)}: {count} in {self.folder}. Write each beside its question, as that says, and "
                f"run the same command again; some are enough to go on."
            ]
            lines += sorted(problem for _, problem in self._open.values() if problem)
            lines += left_over
        more = len(lines) - 1 - MOST_NAMED
        return "\n  ".join(lines[: 1 + MOST_NAMED] + ([f"and {more} more of these"] if more > 0 else []))

    def _left_over(self) -> Iterator[str]:
        """Set the open questions aside that nobody asked this time; a sentence for each answer to one."""
        if self.folder is None or not self.folder.is_dir():
            return
        ours = tuple(f"{role}-" for role in self._roles)
        names = sorted(path.name for path in self.folder.iterdir() if path.name.startswith(ours))
        answered = {name.removesuffix(ending) for ending in READERS for name in names if name.endswith(ending)}
        for name in sorted(answered - self._asked):
            yield f"the answer to {name} is not used: the run does not ask that question, or not yet"
        for name in names:
            # A question's own file and those of its images have its name and a dot at the front.
            if not any(name.startswith(f"{kept}.") for kept in self._asked | answered):
                moved(self.folder / name, self.folder / ASIDE)


def found_in(folder: Path, name: str) -> list[Path]:
    """The answers to a question in a folder."""
    return [path for ending in READERS if (path := folder / f"{name}{ending}").is_file()]


def read_answer(path: Path) -> ChatReply:
    """The reply in an answer's file. Raises `Unusable` with the file's name."""
    try:
        return READERS[TEXT if path.name.endswith(TEXT) else STRUCTURED](read_if_there(path) or b"")
    except Unusable as unusable:
        raise Unusable(f"{path} {unusable}.") from None


def moved(path: Path, folder: Path) -> None:
    """Move a file into a folder, in place of one of its name there."""
    make_folder(folder)
    with writing(folder):
        path.replace(folder / path.name)


@define(eq=False)
class HandoffModel:
    """Implements `ChatModel` for one role."""

    model: str
    role: str
    backend: HandoffBackend

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply in the call's answer file. Raises `Pending` while there is none that can be used, and
        `PermanentError` for an answer to a question that is not the one that is asked.
        """
        if self.backend.folder is None:
            raise PermanentError(
                "the backend handoff answers calls of a run only: its questions lie in the run's folder"
            )
        question = Question(self.backend.folder, self.role, self.model, request)
        try:
            with self.backend.reading:
                reply = self._answered(question)
        except Unusable as unusable:
            self._wait(question, str(unusable))
        if reply is None:
            self._wait(question, "")
        self.backend.noted(question, None)
        return reply

    def _wait(self, question: Question, problem: str) -> NoReturn:
        question.write()
        self.backend.noted(question, problem)
        raise Pending(problem or f"the call waits for its answer: {question.folder / question.name}.md")

    def _answered(self, question: Question) -> ChatReply | None:
        """The reply, its files moved to those that were answered; `None` while there is none."""
        given, taken = (found_in(folder, question.name) for folder in (question.folder, question.folder / ANSWERED))
        if given:
            self._require_unchanged(question, given[0])
            if len(given) > 1:
                raise Unusable(f"{given[0]}: there is {given[1].name} as well; delete the one that is not meant.")
            reply = read_answer(given[0])
            # The answer first: if this is where the process is killed, it is found there with its question here.
            for path in (given[0], *question.files()):
                moved(path, question.folder / ANSWERED)
            return reply
        # Taken by a process that was killed before the run had it.
        same = taken and self._asked_before(question, (".", ANSWERED))
        return read_answer(taken[0]) if same else None

    def _asked_before(self, question: Question, places: Sequence[str]) -> bool | None:
        """Whether what was written as this question is what is asked now; `None` when nothing is there."""
        paths = [question.folder / place / f"{question.name}.md" for place in places]
        texts = [data.decode("utf-8", "replace") for path in paths if (data := read_if_there(path)) is not None]
        return question.asks(texts[0]) if texts else None

    def _require_unchanged(self, question: Question, answer: Path) -> None:
        """Raise `PermanentError` unless the question beside the answer is the one that is asked now."""
        same = self._asked_before(question, (".", ANSWERED, ASIDE))
        if same:
            return
        what = "is not there any more" if same is None else "has changed since it was written"
        raise PermanentError(
            f"the answer {answer} is not taken: the question that it was given to ({question.name}.md) {what}, or was "
            f"edited. Move the answer away and run the same command again: the question is then written as it is asked."
        )
