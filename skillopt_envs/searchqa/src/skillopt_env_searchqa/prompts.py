"""What the target is told."""

from __future__ import annotations

ROLE = """\
You answer trivia clues. Each clue comes with search results that were found for it; some help, some mislead, \
and some say nothing about it."""

TASK_FORM = """\
## Task

You are given a context and a question. The context holds search results, each beginning with [DOC], its title \
after [TLE] and its text after [PAR]. The question is a clue, often not phrased as a question: work out what \
it points at. Prefer what the context supports; where it says nothing, use what you know."""

ANSWER_FORM = """\
## Answer

Think first, briefly. Then end with the answer alone, as short as it can be, between answer tags and with nothing \
after them. For the clue "This planet, the largest, is named for the king of the Roman gods" the last line is:

<answer>Jupiter</answer>"""

CHECK_AGAIN = """\
Look at the clue and the search results once more and check your answer: does every part of the clue fit it, is it \
as short as it can be? Keep it or correct it, and end again with the answer alone between answer tags."""


def system_prompt(skill: str) -> str:
    """Role, the skill under its own heading (left out when blank), task form, answer form."""
    parts = [ROLE, f"## Skill\n\n{skill.strip()}" if skill.strip() else "", TASK_FORM, ANSWER_FORM]
    return "\n\n".join(part for part in parts if part)


def user_prompt(question: str, context: str) -> str:
    """The context (left out when blank) and the question, each in its section."""
    parts = [f"## Context\n\n{context.strip()}" if context.strip() else "", f"## Question\n\n{question.strip()}"]
    return "\n\n".join(part for part in parts if part)


def agent_prompt(question: str, context: str) -> str:
    """What an agent program is told; the skill lies where the program looks for it."""
    return "\n\n".join([ROLE, TASK_FORM, ANSWER_FORM, user_prompt(question, context)])
