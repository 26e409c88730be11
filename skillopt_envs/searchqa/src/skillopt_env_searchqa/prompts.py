"""What the target is told."""

from __future__ import annotations

from skillopt_lib_env.questions import Form

FORM = Form(
    role="""\
You answer trivia clues. Each clue comes with search results that were found for it; some help, some mislead, \
and some say nothing about it.""",
    task="""\
## Task

You are given a context and a question. The context holds search results, each beginning with [DOC], its title \
after [TLE] and its text after [PAR]. The question is a clue, often not phrased as a question: work out what \
it points at. Prefer what the context supports; where it says nothing, use what you know.""",
    answer="""\
## Answer

Think first, briefly. Then end with the answer alone, as short as it can be, between answer tags and with nothing \
after them. For the clue "This planet, the largest, is named for the king of the Roman gods" the last line is:

<answer>Jupiter</answer>""",
    check="""\
Look at the clue and the search results once more and check your answer: does every part of the clue fit it, is it \
as short as it can be? Keep it or correct it, and end again with the answer alone between answer tags.""",
)


def question_text(question: str, context: str) -> str:
    """The context (left out when blank) and the question, each in its section."""
    parts = [f"## Context\n\n{context.strip()}" if context.strip() else "", f"## Question\n\n{question.strip()}"]
    return "\n\n".join(part for part in parts if part)
