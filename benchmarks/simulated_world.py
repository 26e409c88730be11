"""The world that the benchmarks over HTTP train in: questions of topics, and what either model says of them.

The target answers a question right by a number that is fixed for it, far more often where the skill has the rule of
its topic, hardly ever where it has the rule that spoils it. The optimizer proposes the rules that its trajectories
lack, and now and then one that spoils. Every reply is a function of its request, so that every trainer and every order
of threads meets the same world. Replies to the optimizer's requests have every key that some stage may look for.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RIGHT = {"spoiled": 0.05, "ruled": 0.95, "plain": 0.2}
"""How often a question is answered right, by what the skill says of its topic."""
SPOILS = 0.2
"""How often an analyst proposes a rule that spoils its topic."""

_TOPIC = re.compile(r"\[topic (\d\d)\]")
_QUESTION = re.compile(r"^.*(\[topic \d\d\][^\n?]*\?)", re.MULTILINE)
_RULE = re.compile(r"(?:Keep|Turn) to the (?:list|rumour) for topic \d\d")
_PROPOSED = re.compile(rf'"- ({_RULE.pattern})')
"""A rule at the begin of a JSON string: of an edit, and not of the skill that a merge is shown, too."""
_BUDGET = re.compile(r"at most \**(\d+)", re.IGNORECASE)
_NUMBERED = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_SYLLABLES = ("an", "bel", "cor", "dun", "eth", "fal", "gor", "hin", "iss", "jor", "kel", "lun")


def rule(topic: str) -> str:
    return f"Keep to the list for topic {topic}"


def spoiler(topic: str) -> str:
    return f"Turn to the rumour for topic {topic}"


def write_data(folder: Path, topics: int, sizes: Mapping[str, int], seed: int = 1) -> None:
    """`<split>/items.json` for each split, as the environment `searchqa` reads them; at most 100 topics."""
    generator, number = random.Random(seed), 0

    def name() -> str:
        return "".join(generator.choices(_SYLLABLES, k=3)).capitalize()

    for split, size in sizes.items():
        items = []
        for _ in range(size):
            number += 1
            topic, answer = f"{generator.randrange(topics):02d}", f"{name()} {name()}"
            told = [f"[DOC] The town of {name()} lies near {name()} and has {number % 97} wells." for _ in range(7)]
            told.insert(generator.randrange(8), f"[DOC] The list of topic {topic} has {answer} at line {number}.")
            question = f"[topic {topic}] What stands at line {number}?"
            items.append({"id": f"q{number:05d}", "question": question, "context": " ".join(told), "answers": [answer]})
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(items), encoding="utf-8")


def read_questions(data: Path, *splits: str) -> dict[str, str]:
    """Question -> its answer, of these splits or of all."""
    files = [data / split / "items.json" for split in splits] or sorted(data.glob("*/items.json"))
    return {item["question"]: item["answers"][0] for path in files for item in json.loads(path.read_bytes())}


class World:
    """What the models of one data set say."""

    def __init__(self, data: Path, seed: int = 1) -> None:
        self.answers, self.seed = read_questions(data), seed

    def reply(self, model: str, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of the reply; a model whose name has "optimizer" in it is one, every other one is the target."""
        text = "\n".join(_text(message) for message in messages)
        if "optimizer" not in model:
            return self._answer(text, _text(messages[-1]))
        last = "\n".join(_text(message) for message in messages if message["role"] == "user")
        return json.dumps(self._proposal(text, last))

    def right(self, question: str, skill: str) -> bool:
        """Whether the target answers the question right with this skill."""
        topic = question[7:9]
        said = "spoiled" if spoiler(topic) in skill else "ruled" if rule(topic) in skill else "plain"
        return _draw(self.seed, question) < RIGHT[said]

    def _answer(self, text: str, user: str) -> str:
        question = next((found for found in _QUESTION.findall(user) if found in self.answers), None)
        if question is None:
            return "No line of the list fits.\n<answer>unknown</answer>"
        answer = self.answers[question] if self.right(question, text) else "Somewhere Else"
        return f"The line that is asked for settles it.\n<answer>{answer}</answer>"

    def _proposal(self, text: str, user: str) -> dict[str, Any]:
        budget = int(found[1]) if (found := _BUDGET.search(text)) else 4
        topics = Counter(_TOPIC.findall(user))
        if topics:
            proposed = self._rules_for(topics, text)
        else:  # a merge, a ranking or the end of an epoch: what it is shown, once each
            proposed = list(dict.fromkeys(_PROPOSED.findall(user) or _RULE.findall(user)))
        edits = [
            {"op": "append", "target": "", "content": f"- {one}.", "support_count": 1, "source_type": "failure"}
            for one in proposed[:budget]
        ]
        numbers = sorted(set(map(int, _NUMBERED.findall(user)))) or list(range(len(edits)))
        return {
            "reasoning": "Rules are missing.", "batch_size": sum(topics.values()), "edits": edits,
            "patch": {"reasoning": "Rules are missing.", "edits": edits}, "selected_indices": numbers[:budget],
            "failure_summary": [{"failure_type": "rule missing", "count": sum(topics.values()), "description": ""}],
            "success_patterns": [], "notes": [], "learning_rate": budget, "slow_update_content": "Keep what works.",
            "meta_skill_content": "A rule for each topic.",
        }  # fmt: skip

    def _rules_for(self, topics: Counter[str], text: str) -> list[str]:
        found = []
        for topic, _ in topics.most_common():
            spoils = _draw(self.seed, topic, hashlib.sha256(text.encode()).hexdigest()) < SPOILS
            found.append(spoiler(topic) if spoils else rule(topic))
        return [one for one in found if one not in text]


def score_of(answers: Iterable[tuple[str, str]]) -> float:
    """The share of (right answer, reply) whose reply ends in the right answer tag."""
    verdicts = [f"<answer>{right}</answer>" in reply for right, reply in answers]
    return sum(verdicts) / len(verdicts)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _draw(*names: object) -> float:
    digest = hashlib.blake2b("|".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
