"""The benchmark's questions: read from its raw files or from a split that was written, and their choices shuffled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from attrs import evolve, frozen
from skillopt_lib_env.data_files import Item

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
STOCK_OPTION = "One of the remaining options is correct, but a stronger result can be proven."
"""The text that the benchmark's authors put in the right choice's place in 85 of their 177 items, and only there."""

HOW_TO_MAKE_DATA = (
    "The questions are not shipped. Fetch the four files qa_*_final.json of the benchmark (the README of "
    "skillopt-env-livemathematicianbench says where), and let `skillopt data livemathematicianbench --from FOLDER` "
    "write the published split; or let a run split them: `-o env.split_mode=ratio env.data_path=FOLDER`."
)


@frozen
class Choice:
    """One choice: its label, a single letter, and its text."""

    label: str
    text: str


@frozen
class Question:
    """One item of the benchmark.

    id       "<month>:<no>"
    choices  all of them, the right one included, in the order of their labels
    right    the label of the right choice
    kinds    what the theorem is ("Inequality or Bound", ...), as the authors classified it
    theorem, sketch  what the question was made of; they give the answer away
    """

    id: str
    question: str
    choices: tuple[Choice, ...]
    right: str
    kinds: tuple[str, ...] = ()
    theorem: str = ""
    sketch: str = ""

    @property
    def right_text(self) -> str:
        """The text of the right choice."""
        return next(choice.text for choice in self.choices if choice.label == self.right)

    @property
    def has_stock_option(self) -> bool:
        """Whether one of the choices is the stock option."""
        return any(is_stock_option(choice) for choice in self.choices)


def is_stock_option(choice: Choice) -> bool:
    """Whether a choice has the stock option's text, whatever its blanks."""
    return _plain(choice.text) == _plain(STOCK_OPTION)


def question_of(item: Item) -> Question:
    """The question of one raw item, or of one that `skillopt data` wrote.

    Question, choices and right choice stand in `mcq` or at the top. Choices: a list of `{label, text}` (or `content`),
    a list of texts (labelled A, B, ... by position), or a mapping label -> text; blank ones are left out. The right
    choice is `{label, text}` or a label, and joins the choices where they lack it, as they do in the benchmark's own
    files.

    Raises `DataError` that names the item for one that no answer could be judged by.
    """
    if set(item.fields) <= {"id", "month", "no", "paper_link", "source_file"}:
        raise item.problem(f"the file lists ids only (a split manifest), not questions. {HOW_TO_MAKE_DATA}")
    inner = item.fields.get("mcq", item.fields)
    if not isinstance(inner, Mapping):
        raise item.problem("the field 'mcq' must be an object with the question and its choices.")
    mcq = Item(inner, f"{item.where}, mcq" if "mcq" in item.fields else item.where)
    choices = {choice.label: choice for choice in _choices(mcq)}
    right = _right_choice(mcq)
    if right.label not in choices and right.text:
        choices[right.label] = right
    _check(mcq, choices, right)
    month, no = item.text("month", "").strip(), item.text("no", "").strip()
    return Question(
        id=item.text("id", "").strip() or (f"{month}:{no}" if month else no) or item.required_text("id"),
        question=mcq.required_text("question"),
        choices=tuple(sorted(choices.values(), key=lambda choice: choice.label)),
        right=right.label,
        kinds=item.texts("theorem_type") if item.fields.get("theorem_type") is not None else (),
        theorem=item.text("theorem", ""),
        sketch=item.text("sketch", ""),
    )


def shuffled(question: Question, seed: int) -> Question:
    """The question with its choices in an order that depends on `seed` and its id alone, labelled A, B, C, ... anew.

    Python's `Random`, seeded with the first 16 hex digits of SHA-256 of "<seed>:<id>", as earlier trainers had it.
    """
    digest = hashlib.sha256(f"{seed}:{question.id}".encode()).hexdigest()[:16]
    order = list(question.choices)
    Random(int(digest, 16)).shuffle(order)
    relabelled = [(choice.label, Choice(letter, choice.text)) for letter, choice in zip(LETTERS, order, strict=False)]
    right = next(new.label for old, new in relabelled if old == question.right)
    return evolve(question, choices=tuple(new for _, new in relabelled), right=right)


def as_fields(question: Question) -> dict[str, Any]:
    """The question as an item of `items.json`, which `question_of` reads again."""
    return {
        "id": question.id,
        "question": question.question,
        "choices": [{"label": choice.label, "text": choice.text} for choice in question.choices],
        "correct_choice": {"label": question.right, "text": question.right_text},
        "theorem_type": list(question.kinds),
        "theorem": question.theorem,
        "sketch": question.sketch,
    }


def _choices(mcq: Item) -> Iterator[Choice]:
    given = mcq.fields.get("choices")
    if isinstance(given, Mapping):
        pairs: Sequence[Any] = [{"label": label, "text": text} for label, text in given.items()]
    elif isinstance(given, list):
        pairs = given
    elif given is None:
        raise mcq.problem(f"the field 'choices' is missing; the fields given are {', '.join(map(repr, mcq.fields))}.")
    else:
        raise mcq.problem("the field 'choices' must be a list of choices, or an object of label and text.")
    for letter, each in zip(LETTERS, pairs, strict=False):
        choice = _choice(mcq, each if isinstance(each, Mapping) else {"label": letter, "text": each}, letter)
        if choice.text:
            yield choice


def _choice(mcq: Item, fields: Mapping[str, Any], letter: str = "") -> Choice:
    """A choice of `{label, text}`; `letter`: its label where it names none."""
    inner = Item(fields, f"{mcq.where}, a choice")
    label = inner.text("label", "").strip().upper() or letter
    text = inner.text("text" if fields.get("text") is not None else "content", "").strip()
    if len(label) != 1 or label not in LETTERS:
        raise inner.problem(f"the label {label!r} is not a single letter.")
    return Choice(label, text)


def _right_choice(mcq: Item) -> Choice:
    given = mcq.fields.get("correct_choice")
    if given is None:
        mcq.text("correct_choice")  # says that it is missing, and what is there
    return _choice(mcq, given if isinstance(given, Mapping) else {"label": mcq.text("correct_choice")})


def _check(mcq: Item, choices: Mapping[str, Choice], right: Choice) -> None:
    problem: str | None = None
    listed = [choice.label for choice in _choices(mcq)]
    doubled = sorted({label for label in listed if listed.count(label) > 1})
    known = choices.get(right.label)
    if doubled:
        problem = f"two choices have the label {doubled[0]}."
    elif len(choices) < 2:
        problem = "there must be at least two choices that are not blank."
    elif known is None:
        problem = f"the correct choice {right.label} is none of the choices {', '.join(sorted(choices))}."
    elif right.text and _plain(right.text) != _plain(known.text):
        problem = f"the correct choice {right.label} and the choice of that label have different texts."
    if problem:
        raise mcq.problem(problem)


def _plain(text: str) -> str:
    return " ".join(text.split())
