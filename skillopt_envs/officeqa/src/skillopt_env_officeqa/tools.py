"""The tools with which a chat model looks into the corpus. Whatever it asks for is answered; nothing is fatal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import frozen
from skillopt_kernel.models.requests import Tool
from skillopt_kernel.records import ToolCall

from skillopt_env_officeqa.corpus import Corpus, Document, lines_of, some_lines
from skillopt_env_officeqa.passages import Passage, PassageIndex, SearchTimeout, words_of

MOST_NAMES, MOST_HITS, MOST_PASSAGES, MOST_LINES = 50, 20, 8, 400
DEFAULT_LINES, MOST_QUOTED = 80, 4
LONGEST_RESULT, LONGEST_LINE, LONGEST_ARGUMENT = 4000, 400, 1000
"""Characters: of one `read`, of one line that `search` or `grep` quotes, and of an argument: matching a shell pattern
takes time that grows with the square of its length."""

_TEXT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}


def _tool(name: str, description: str, required: Sequence[str], **properties: Mapping[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name, description, schema)


def _about(base: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**base, "description": text}


TOOLS = (
    _tool(
        "search",
        f"Find the passages of the documents that fit some words best, at most {MOST_PASSAGES}. Gives document, lines "
        f"and the lines that hold the words.",
        ["query"],
        query=_about(_TEXT, "words that the passage holds, such as names of table rows, years and months"),
        documents=_about(_TEXT, "shell pattern of the documents to look in, such as *_1944_*; default: all"),
    ),
    _tool(
        "glob",
        f"List documents by a shell pattern of their name, at most {MOST_NAMES}.",
        ["pattern"],
        pattern=_about(_TEXT, "such as *_1944_*.txt"),
    ),
    _tool(
        "read",
        f"Read lines of a document, at most {LONGEST_RESULT} characters at once.",
        ["path"],
        path=_about(_TEXT, "the document's name, as search and glob give it"),
        start=_about(_NUMBER, "first line, from 1; default: 1"),
        limit=_about(_NUMBER, f"number of lines, at most {MOST_LINES}; default: {DEFAULT_LINES}"),
    ),
    _tool(
        "grep",
        f"Find the lines of one document that hold a text, whatever its letter case; at most {MOST_HITS}.",
        ["pattern", "path"],
        pattern=_about(_TEXT, "the text; no regular expression"),
        path=_about(_TEXT, "the document's name"),
    ),
)


class ArgumentProblem(Exception):
    """What is wrong with the arguments of a call, in a sentence for the model."""


@frozen
class CorpusTools:
    """Answers tool calls from one corpus. `index` is of the whole corpus, of which `corpus` may be a part."""

    corpus: Corpus
    index: PassageIndex
    whole: bool = True

    def answer(self, call: ToolCall) -> str:
        """The result of a call; a sentence in square brackets for one that cannot be answered."""
        try:
            known: dict[str, Callable[..., str]] = {
                "search": self._search,
                "glob": self._glob,
                "read": self._read,
                "grep": self._grep,
            }
            if call.name not in known:
                raise ArgumentProblem(f"there is no tool {_named(call.name)}; there are {', '.join(known)}")
            return known[call.name](**arguments_of(call))
        except ArgumentProblem as problem:
            return f"[error: {problem}]"

    def _search(self, query: str, documents: str = "") -> str:
        if not words_of(query):
            raise ArgumentProblem("the query holds no word to search for")
        among = self.corpus.matching(documents) if documents.strip() else None
        if among == []:
            raise ArgumentProblem(f"no document's name matches {_named(documents)}; list names with glob")
        if among is None and not self.whole:
            among = list(self.corpus.documents)
        try:
            found = self.index.search(query, MOST_PASSAGES, among)
        except SearchTimeout:
            raise ArgumentProblem("the search took too long; use fewer words, and rarer ones") from None
        return "\n\n".join(self._quoted(passage, query) for passage in found) or "[no passage holds any of these words]"

    def _quoted(self, passage: Passage, query: str) -> str:
        document = self.corpus.documents[passage.document]
        lines = dict(enumerate(some_lines(document, passage.first, passage.last - passage.first + 1), passage.first))
        words = words_of(query)
        shown = [f"{number}: {shortened(lines[number], words)}" for number in telling_lines(lines, words)]
        return "\n".join([f"{passage.document}, lines {passage.first} to {passage.last}:", *shown])

    def _glob(self, pattern: str) -> str:
        names = self.corpus.matching(pattern)
        more = len(names) - MOST_NAMES
        told = [*names[:MOST_NAMES], *([f"[and {more} more; use a narrower pattern]"] if more > 0 else [])]
        return "\n".join(told) or "[no document's name matches this pattern]"

    def _read(self, path: str, start: int = 1, limit: int = DEFAULT_LINES) -> str:
        document = self._document(path)
        lines = some_lines(document, start, min(limit, MOST_LINES))
        if not lines:
            return f"[{document.name} has no line {start}]"
        kept, size = list[str](), 0
        for line in lines:
            size += len(line) + 1
            if kept and size > LONGEST_RESULT:
                break
            kept.append(line)
        last = start + len(kept) - 1
        text = "\n".join(kept)
        if len(text) > LONGEST_RESULT:
            text = f"{text[:LONGEST_RESULT]}\n[line {last} is longer; find the rest of it with grep]"
        goes_on = f"\n[cut at line {last}; go on with start={last + 1}]" if len(kept) < len(lines) else ""
        return f"{document.name}, lines {start} to {last}:\n{text}{goes_on}"

    def _grep(self, pattern: str, path: str) -> str:
        document, wanted = self._document(path), pattern.lower()
        if not wanted.strip():
            raise ArgumentProblem("the pattern is blank")
        hits = (pair for pair in enumerate(lines_of(document), start=1) if wanted in pair[1].lower())
        found = [f"{number}: {shortened(line, [wanted])}" for number, line in islice(hits, MOST_HITS + 1)]
        more = ["[and more; use a longer text]"] if len(found) > MOST_HITS else []
        return "\n".join(found[:MOST_HITS] + more) or f"[no line of {document.name} holds this text]"

    def _document(self, name: str) -> Document:
        found = self.corpus.find(name)
        if found is None:
            raise ArgumentProblem(f"there is no document {_named(name)}; search and glob give the names")
        return found


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call, checked against its tool. Raises `ArgumentProblem`."""
    schema = next(tool.parameters for tool in TOOLS if tool.name == call.name)
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ArgumentProblem(f"the arguments of {call.name} are not JSON: {str(error)[:LONGEST_LINE]}") from error
    if not isinstance(given, dict):
        raise ArgumentProblem(f"the arguments of {call.name} must be a JSON object")
    properties = schema["properties"]
    if unknown := [name for name in given if name not in properties]:
        raise ArgumentProblem(f"{call.name} has no argument {_named(unknown[0])}; it has {', '.join(properties)}")
    given = {name: value for name, value in given.items() if value is not None}
    if missing := [name for name in schema["required"] if name not in given]:
        raise ArgumentProblem(f"{call.name} needs the argument {missing[0]!r}")
    return {name: _checked(call.name, name, value, properties[name]["type"]) for name, value in given.items()}


def _checked(tool: str, name: str, value: Any, kind: str) -> Any:
    if kind == "string":
        if not isinstance(value, str):
            raise ArgumentProblem(f"the argument {name!r} of {tool} must be text")
        if len(value) > LONGEST_ARGUMENT:
            raise ArgumentProblem(
                f"the argument {name!r} of {tool} has {len(value)} characters; at most {LONGEST_ARGUMENT} are taken"
            )
        return value
    text = str(value).strip()
    whole = isinstance(value, int | str) and not isinstance(value, bool) and text.isascii() and text.isdigit()
    if not whole or len(text) > 12 or int(text) < 1:
        raise ArgumentProblem(f"the argument {name!r} of {tool} must be a whole number from 1")
    return int(text)


def _named(text: str) -> str:
    """What a model wrote, as an error quotes it."""
    return repr(text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "...")


def telling_lines(lines: Mapping[int, str], words: Collection[str]) -> list[int]:
    """The numbers of the few lines that tell most of `words`, in order; a word counts less the more lines hold it."""
    held = {number: set(words) & set(words_of(line)) for number, line in lines.items()}
    holding = Counter(word for found in held.values() for word in found)
    worth = {number: sum(1 / holding[word] for word in sorted(found)) for number, found in held.items() if found}
    return sorted(sorted(worth, key=lambda number: (-worth[number], number))[:MOST_QUOTED])


def shortened(line: str, words: Sequence[str]) -> str:
    """A line of at most `LONGEST_LINE` characters, around the first of `words` where it is longer."""
    if len(line) <= LONGEST_LINE:
        return line
    low = line.lower()
    places = [place for word in words if (place := low.find(word)) >= 0]
    at = max(0, min(places, default=0) - LONGEST_LINE // 2)
    return ("..." if at else "") + line[at : at + LONGEST_LINE] + ("..." if at + LONGEST_LINE < len(line) else "")
