"""Whether a rubric speaks of the form of an answer alone. A guess by its words, good enough for a warning."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"\b(?:headings?|headers?|sections?|titles?|subtitles?|bullets?|bulleted|numbered list|tables?|markdown|"
    r"format(?:ted|ting)?|layout|bold|italics?|emojis?|code blocks?|paragraphs?|sentences?|words?|characters|"
    r"concise|brief|short|length|tone|polite(?:ly)?|friendly|formal|style|"
    r"(?:begin|start|end|open|close)s? with|signature|greeting|salutation|valid json)\b"
    r"|\b(?:contains?|includes?|mentions?|has|have|says?|holds?|uses?)\s+(?:the\s+\w+\s+)?[\"'`“‘]",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\b(?:correct(?:ly|ness)?|right|wrong|accura\w+|true|truth|false|facts?|factual\w*|references?|answers? the|"
    r"agrees?|supported|sources?|causes?|values?|results? (?:is|are|of)|solves?|solved|solution|complete(?:ly|ness)?|"
    r"equals?|matches|names? (?:the|all|each|every)|states? (?:the|nothing|only)|gives? the|identif\w+|explains?|"
    r"invent\w*|hallucinat\w*|contradict\w*|works?|passes|runs?|fulfil\w*|relevant|useful|helpful)\b",
    re.IGNORECASE,
)


def speaks_of_form(rubric: str) -> bool:
    """Whether each sentence of a rubric names something of layout, wording, tone or length, and none an outcome."""
    sentences = [each for each in re.split(r"(?<=[.;!?])\s+|\n+", rubric) if re.search(r"\w", each)]
    return bool(sentences) and not _OUTCOME.search(rubric) and all(map(_FORM.search, sentences))
