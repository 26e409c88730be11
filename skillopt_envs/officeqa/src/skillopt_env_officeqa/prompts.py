"""What the target is told."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_lib_env.questions import Form

ROLE = """\
You answer questions about U.S. Treasury Bulletins: issues of a periodical full of tables, in which a figure depends \
on the row, the column, the period and the unit."""

TOOL_TASK = """\
## Task

The issues are text documents that you reach with tools only: `search` finds passages by words, `glob` lists documents \
by name, `read` shows lines, `grep` finds a text in one document. Narrow down to an issue and a table, then read its \
lines with the table's title, its column heads and its unit. Compute only once every figure is in front of you, and \
use no figure that you have not read. Tools that cannot answer say why in square brackets."""

PAGES_TASK = """\
## Task

The pages that hold the answer are given below the question. Use no figure that does not stand in them."""

FILES_TASK = """\
## Task

The issues are text files in the folder `corpus/`; look into them with commands of your own. Do not change them. \
Narrow down to an issue and a table, then read its lines with the table's title, its column heads and its unit. \
Compute only once every figure is in front of you, and use no figure that you have not read."""

WEB_TASK = """\
## Task

You look for the answer on the web. To search, end your reply with up to {queries} queries between tags, as a JSON list:

<search_queries>["treasury bulletin July 1944 receipts", "treasury bulletin July 1944 public debt"]</search_queries>

The results come back as title, address and excerpt. Use no figure that no result holds."""

ANSWER_FORM = """\
## Answer

When you are done, end with the answer alone, on one line between answer tags, and with nothing after them: the number \
with its sign, in the unit that the question asks for, or the date or name; several values as a list in the order \
asked for. No sentence, no markup. For a question that asks for two amounts in millions the last line could be:

<answer>[1204, 87.5]</answer>"""

LAST_TURN = "This is your last turn: {closed}. Answer now with what you have, between answer tags."
NO_TOOLS, NO_SEARCHES = "tools answer no more", "no more searches are made"
REMINDER = "Your reply holds neither a {step} nor an answer. Go on, or end with the answer alone between answer tags."


def form(task: str) -> Form:
    """What the target is told beside the question and `task`, what there is to do and how to look."""
    return Form(ROLE, task, ANSWER_FORM, check="")


def question_text(question: str, *, pages: str = "", files: Sequence[str] = (), addresses: Sequence[str] = ()) -> str:
    """The question, and what the target may be told of where its answer stands; what is empty is left out."""
    sections = (
        ("Question", question.strip()),
        ("Pages that hold the answer", pages),
        ("Documents that hold the answer", "\n".join(f"- {name}" for name in files)),
        ("Where the pages stand on the web", "\n".join(f"- {address}" for address in addresses)),
    )
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections if text)
