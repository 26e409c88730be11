"""What the target is told."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_lib_env.questions import Form

FORM = Form(
    role="""\
You read scanned documents and answer questions about them: letters, forms, tables, reports and notes, printed, typed \
or written by hand.""",
    task="""\
## Task

You are given a question and the image of a page. The answer stands on the page. Find the place that the question \
is about, read it to the end, and answer with the text that stands there. Where several entries look alike, compare \
all of them with the question before you choose. Do not work out, translate or complete what the page does not say.""",
    answer="""\
## Answer

Say briefly where on the page you found it. Then end with the answer alone between answer tags, spelled as the page \
spells it, without a sentence around it and with nothing after the tags. Asked for the date of a letter headed \
"12th May 1971", the last line is:

<answer>12th May 1971</answer>""",
    check="""\
Look at the page once more and check your answer: is it the entry that the question asks for, is it whole, and is \
every character as it stands there? Keep it or correct it, and end again with the answer alone between answer tags.""",
)


def question_text(question: str, names: Sequence[str], *, as_files: bool) -> str:
    """The question, and how the pages are given: attached to the message, or as files of these names."""
    if as_files:
        listed = "\n".join(f"- `{name}`" for name in names)
        what = "the image" if len(names) == 1 else "each image"
        page = f"Open {what} in your working folder and look at it:\n\n{listed}"
    else:
        page = "The page is attached." if len(names) == 1 else f"The {len(names)} pages are attached in order."
    return f"## Page\n\n{page}\n\n## Question\n\n{question.strip()}"
