"""A world in use: what a skill says, what a question asks, and how likely a right answer is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping

from attrs import field, frozen

from skillopt_backend_simulated.world_file import Kind, WorldFile

_APPENDIX = re.compile(r"^## Execution Notes Appendix[ \t]*\r?\n((?:[ \t]*\r?\n|- .*(?:\n|\Z))*)", re.MULTILINE)
"""The notes under the heading that the appendix has: a list, up to the next line that is none of its items."""


def plain(text: str) -> str:
    """The text as sentences are compared: compatibility form, lower case, single spaces, no escapes of JSON."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace('\\"', '"').split())


@frozen
class Question:
    """A question of the world's data with its right answers (at least one) and its kind."""

    text: str
    answers: tuple[str, ...]
    kind: str


@frozen
class World:
    """A checked world file with the questions of its data, by their plain text.

    name  what messages call the file
    """

    name: str
    file: WorldFile
    questions: Mapping[str, Question]
    _sentences: Mapping[str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        sentences = {name: plain(rule.sentence).rstrip(".") for name, rule in self.file.rules.items()}
        object.__setattr__(self, "_sentences", sentences)

    def rules_in(self, text: str) -> tuple[str, ...]:
        """The rules whose sentence stands in the text, in the order of the world file."""
        searched = plain(text)
        return tuple(name for name, sentence in self._sentences.items() if sentence in searched)

    def rules_recalled(self, text: str) -> tuple[str, ...]:
        """The rules whose sentence stands in a note of the text's appendix."""
        return self.rules_in("\n".join(_APPENDIX.findall(text)))

    def kind_of(self, text: str) -> str | None:
        """The first kind whose marker or pattern is in the text."""
        return next((name for name in self.file.kinds if self.asks_for(name, text)), None)

    def question_in(self, text: str) -> Question | None:
        """The known question that stands in the text: as a line of its own, else the longest one inside it."""
        for line in text.splitlines():
            found = self.questions.get(plain(line))
            if found is not None:
                return found
        searched = plain(text)
        inside = [known for known in self.questions if known in searched]
        return self.questions[max(inside, key=len)] if inside else None

    def asks_for(self, kind: str, text: str) -> bool:
        """Whether the text holds what a question of the kind is known by."""
        return matches(self.file.kinds[kind], text)

    def right_chance(self, kind: str, rules: Collection[str]) -> float:
        """How likely a question of the kind is answered right with these rules in the skill."""
        needs = self.file.kinds[kind].needs
        have = sum(need in rules for need in needs) / len(needs) if needs else 1.0
        wanted = self.file.kinds[kind]
        chance = wanted.right_without + (wanted.right_with - wanted.right_without) * have
        return max(0.0, chance - sum(self.harm(rule, kind) for rule in rules))

    def harm(self, rule: str, kind: str) -> float:
        harms = self.file.rules[rule].harms
        return harms.get(kind, harms.get("all", 0.0))

    def seen_in(self, count: int) -> float:
        """The chance that at least one of `count` trajectories shows the optimizer what they have in common."""
        return 1.0 - (1.0 - self.file.optimizer.insight) ** count

    def helps(self, rule: str, kind: str) -> bool:
        return rule in self.file.kinds[kind].needs

    @property
    def helpful(self) -> tuple[str, ...]:
        return tuple(rule for rule in self.file.rules if any(self.helps(rule, kind) for kind in self.file.kinds))

    @property
    def harmful(self) -> tuple[str, ...]:
        helpful = self.helpful
        return tuple(name for name, rule in self.file.rules.items() if rule.harms and name not in helpful)

    @property
    def distractors(self) -> tuple[str, ...]:
        helpful = self.helpful
        return tuple(name for name, rule in self.file.rules.items() if not rule.harms and name not in helpful)


def matches(kind: Kind, text: str) -> bool:
    return (
        re.search(kind.pattern, text, re.MULTILINE) is not None if kind.pattern else plain(kind.marker) in plain(text)
    )
