"""What the target is told besides the task."""

from __future__ import annotations

from skillopt_lib_env.questions import Form

ROLE = "You do the task that you are given."

ANSWER_FORM = """\
## Answer

Think first, as far as it helps. Then end with your answer alone between answer tags, in the form that the task asks \
for, and with nothing after them:

<answer>your answer</answer>"""

WHOLE_REPLY = """\
## Answer

Reply with the answer alone, in the form that the task asks for: all that you write is taken as your answer."""

FORMS = {
    "tags": Form(ROLE, "", ANSWER_FORM, check=""),
    "whole": Form(ROLE, "", WHOLE_REPLY, check=""),
}
"""By the value of `env.answer`. What there is to do, the user's own prompt says."""
