"""A world over HTTP for the tasks of docs/your-own-tasks.md: a kind of task is done right once its rule is known."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import define, field
from skillopt_testkit.wording import proposal

RULES = {
    "date": "Write a date as year, month and day in digits, joined by hyphens.",
    "amount": "Write an amount as EUR, a blank and the number with two decimals.",
}

OTHER_STAGES = {
    '"selected_indices"': '{"reasoning": "", "selected_indices": [0]}',
    '"slow_update_content"': '{"reasoning": "", "slow_update_content": "Compare the answer with the note."}',
    '"meta_skill_content"': '{"reasoning": "", "meta_skill_content": "Prefer rules on form."}',
}
"""What the optimizer says besides edits, by a word of what it is asked."""


@define
class Receipts:
    """Both models. The target is right where the skill holds the rule; else it answers in the words of the note.

    `asked` keeps every request as text, by role.
    """

    rows: Mapping[str, Mapping[str, str]]
    asked: dict[str, list[str]] = field(factory=lambda: {"target": [], "optimizer": []})

    @classmethod
    def of(cls, table: str) -> Receipts:
        return cls({row["text"]: row for row in csv.DictReader(io.StringIO(table))})

    def __call__(self, body: Mapping[str, Any]) -> str:
        texts = [message["content"] for message in body["messages"]]
        role = "target" if "<answer>your answer</answer>" in texts[0] else "optimizer"
        self.asked[role].append(json.dumps(body, ensure_ascii=False))
        return self.optimizer("\n".join(texts)) if role == "optimizer" else self.target(*texts)

    def target(self, system: str, user: str) -> str:
        row = next(row for text, row in self.rows.items() if text in user)
        right = RULES[row["kind"]] in system
        return f"I look.\n<answer>{row['answer'] if right else row['text'].split('.')[0]}</answer>"

    def optimizer(self, told: str) -> str:
        for asked, reply in OTHER_STAGES.items():
            if asked in told:
                return reply
        kinds = re.findall(r"Task type: (\w+)", told) or list(RULES)
        lacking = [RULES[kind] for kind in kinds if RULES[kind] not in told]
        proposed = [rule for rule in RULES.values() if f'"- {rule}"' in told]  # what a merge is shown
        return proposal(*(proposed or lacking)[:1])
