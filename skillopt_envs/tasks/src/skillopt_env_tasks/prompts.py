"""What the target is told besides the task."""

from __future__ import annotations

ROLE = "You do the task that you are given."

ANSWER_FORM = """\
## Answer

Think first, as far as it helps. Then end with your answer alone between answer tags, in the form that the task asks \
for, and with nothing after them:

<answer>your answer</answer>"""

WHOLE_REPLY = """\
## Answer

Reply with the answer alone, in the form that the task asks for: all that you write is taken as your answer."""

FORMS = {"tags": ANSWER_FORM, "whole": WHOLE_REPLY}
"""By the value of `env.answer`."""


def system_prompt(skill: str, answer: str) -> str:
    """Role, the skill under its own heading (left out when blank), and the form of the answer."""
    parts = [ROLE, f"## Skill\n\n{skill.strip()}" if skill.strip() else "", FORMS[answer]]
    return "\n\n".join(part for part in parts if part)


def agent_prompt(asked: str, answer: str) -> str:
    """What an agent program is told; the skill lies where the program looks for it."""
    return f"{ROLE}\n\n## Task\n\n{asked.strip()}\n\n{FORMS[answer]}"
