"""The small world of these tests, as text, and its questions."""

from __future__ import annotations

from collections.abc import Callable

from skillopt_backend_simulated.world import World

MakeWorld = Callable[..., World]

WORLD = """\
seed: 3
data: [data/*.json]
kinds:
  year:
    marker: In which year
    needs: [digits]
    right_without: 0.0
    right_with: 1.0
  name:
    pattern: "^Who (built|sank) "
    needs: [full, spelt]
    right_without: 0.0
    right_with: 1.0
rules:
  digits: {sentence: "Write the four digits of a year."}
  full: {sentence: "Give the full name."}
  spelt: {sentence: "Spell names as the passage does."}
  guess: {sentence: "Guess at once.", harms: {all: 1.0}}
  hurry: {sentence: "Answer in haste.", harms: {year: 1.0}}
  polite: {sentence: "Be polite."}
target: {partial: 0.0}
optimizer:
  insight: 1.0
  harmful: 0.0
  distractors: 0.0
  duplicates: 0.0
  bad_anchors: 0.0
  over_budget: 0.0
  memory: 1.0
  merging: 1.0
  ranking: 1.0
"""

QUESTIONS = [
    *({"question": f"In which year was mill {number} built?", "answers": [str(1700 + number)]} for number in range(20)),
    *({"question": f"Who built mill {number}?", "answers": [f"Ada Miller {number}"]} for number in range(20)),
]
