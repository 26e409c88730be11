"""What the target is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillopt_lib_env.questions import Form

FORM = Form(
    role="""\
You are a research mathematician who answers multiple-choice questions about theorems of recent papers. Exactly one \
choice is right; the others were written to look right.""",
    task="""\
## Task

You are given a question and its choices, each with a label. Work out which choice holds, from what the question \
assumes and from what you know. Compare the choices word by word where they differ: in quantifiers and their order, in \
the hypotheses, in what is bounded by what and how strictly, in the case of equality, in "the largest", "exactly" and \
"only if".""",
    answer="""\
## Answer

Reason first. Then end with the label of your choice alone between answer tags, with nothing after them. Who chooses D \
ends with the line:

<answer>D</answer>""",
    check="""\
Look at the question and at every choice once more and check yours: is there a case that it gets wrong, and is none of \
the others right in its place? Keep it or correct it, and end again with one label alone between answer tags.""",
)


def question_text(inputs: Mapping[str, object]) -> str:
    """The question and its choices; theorem and sketch where the task shows them."""
    parts = [f"## Question\n\n{str(inputs['question']).strip()}", f"## Choices\n\n{choices_text(inputs['choices'])}"]
    for name, heading in (("theorem", "Theorem"), ("sketch", "Sketch of the proof")):
        if inputs.get(name):
            parts.append(f"## {heading}\n\n{str(inputs[name]).strip()}")
    return "\n\n".join(parts)


def choices_text(choices: object) -> str:
    """A line `B. text` for each choice."""
    assert isinstance(choices, Sequence)
    return "\n".join(f"{choice['label']}. {choice['text']}" for choice in choices)
