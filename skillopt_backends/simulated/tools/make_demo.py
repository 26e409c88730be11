"""Writes the questions of the demo: invented towns, people and books, the same ones every time.

    python skillopt_backends/simulated/tools/make_demo.py skillopt_envs/searchqa/src/skillopt_env_searchqa/demo

FOLDER gets train/, val/ and test/, each with an items.json as the searchqa environment reads it. How the kinds of
question are known stands in the folder's world.yaml, which is written by hand.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

SPLITS = {"train": 5, "val": 3, "test": 5}
"""Split -> questions of each kind."""

_STARTS = ("Al", "Bren", "Cor", "Dal", "Er", "Fen", "Gar", "Hol", "Is", "Jor", "Kel", "Lor", "Mar", "Nor", "Os", "Per")
_MIDDLES = ("a", "be", "di", "e", "go", "la", "mi", "na", "o", "ri", "se", "ta", "u", "va")
_ENDS = ("dan", "lin", "mar", "nes", "ric", "sen", "th", "vik", "wen", "zar")
_TRADES = ("baker", "cooper", "dyer", "glazier", "miller", "notary", "potter", "saddler", "tanner", "weaver")
_THINGS = ("arches", "bells", "boats", "looms", "mills", "steps", "towers", "windows")
_SUBJECTS = ("Bees", "Clouds", "Ferries", "Gardens", "Glass", "Harbours", "Lamps", "Rivers", "Salt", "Winters")

Made = tuple[str, str, list[str]]
"""A question, its answer, and sentences of which the first one tells the answer."""


class Names:
    """Invented names, none of them twice."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self._given = rng, set[str]()

    def word(self) -> str:
        while True:
            word = self.rng.choice(_STARTS) + self.rng.choice(_MIDDLES) + self.rng.choice(_ENDS)
            if word not in self._given:
                self._given.add(word)
                return word

    def person(self) -> str:
        return f"{self.word()} {self.word()}"

    def year(self) -> int:
        return self.rng.randrange(1410, 1890)


def year(names: Names) -> Made:
    town, opened = names.word(), names.year()
    telling = f"The bridge of {town} was opened to carts in {opened}."
    return f"In which year was the bridge of {town} opened?", str(opened), [telling, f"{town} lies on a slow river."]


def author(names: Names) -> Made:
    book, person = f"On {names.rng.choice(_SUBJECTS)} of {names.word()}", names.person()
    telling = f"{book} is the best known work of {person}."
    return f"Who wrote the book {book}?", person, [telling, f"{book} was printed {names.rng.randrange(2, 9)} times."]


def town(names: Names) -> Made:
    hall, place, province = names.word(), names.word(), names.word()
    telling = f"The {hall} Hall stands in {place}, in the province of {province}."
    return f"In which town does the {hall} Hall stand?", place, [telling, f"{province} is known for its orchards."]


def count(names: Names) -> Made:
    place, thing, number = names.word(), names.rng.choice(_THINGS), names.rng.randrange(3, 97)
    telling = f"The inventory of {place} counts {number} {thing}."
    return f"How many {thing} does {place} have?", str(number), [telling, f"{place} pays its taxes in wool."]


def ship(names: Names) -> Made:
    captain, vessel = names.person(), f"{names.word()} Star"
    telling = f"Captain {captain} sailed north on the {vessel}."
    return (
        f"Which ship did Captain {captain} sail on?",
        vessel,
        [telling, f"{captain} came from a family of fishers."],
    )


def older(names: Names) -> Made:
    first, second = names.word(), names.word()
    low = names.year()
    high = low + names.rng.randrange(1, 90)
    telling = f"The abbey of {first} was founded in {low}, that of {second} in {high}."
    pair = [first, second] if names.rng.random() < 0.5 else [second, first]
    return f"Which abbey is older, {pair[0]} or {pair[1]}?", first, [telling, f"{second} has the larger library."]


def trade(names: Names) -> Made:
    person, craft = names.person(), names.rng.choice(_TRADES)
    telling = f"{person} worked as a {craft} before the flood."
    return f"What was the trade of {person}?", craft, [telling, f"{person} had three sisters."]


def title(names: Names) -> Made:
    first, second = names.rng.sample(_SUBJECTS, 2)
    person, name = names.person(), f"The {first} of {names.word()}: A Tale of {second}"
    telling = f"{person} sang in the opera {name}, which closed after a week."
    return f"What is the title of the opera in which {person} sang?", name, [telling, f"{person} never sang again."]


KINDS: tuple[Callable[[Names], Made], ...] = (year, author, town, count, ship, older, trade, title)


def context(names: Names, sentences: list[str], others: list[str]) -> str:
    """Documents in the form of search results: the telling ones between passages of other questions."""
    texts = [*sentences, *names.rng.sample(others, 4)]
    names.rng.shuffle(texts)
    return " ".join(f"[DOC] [TLE] {' '.join(text.split()[:3])} [PAR] {text}" for text in texts)


def make(folder: Path) -> None:
    """Write the three splits into `folder`."""
    names = Names(random.Random(20))
    made = {split: [kind(names) for kind in KINDS for _ in range(each)] for split, each in SPLITS.items()}
    for split, questions in made.items():
        names.rng.shuffle(questions)
        items = []
        for number, (question, answer, sentences) in enumerate(questions, 1):
            others = [other[2][0] for other in questions if other[0] != question]
            text = context(names, sentences, others)
            item = {"id": f"{split}-{number:02d}", "question": question, "context": text, "answers": [answer]}
            items.append(item)
        path = folder / split / "items.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(items, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_demo.py FOLDER")
    make(Path(sys.argv[1]))
