"""JSON out of a model's reply: the one answer in it, or none; never a guess.

Reasoning blocks are taken away first. A fenced `json` block beats bare JSON. Of several answers that disagree
none is taken. Everything is one pass over the text, so that a reply of a hundred thousand braces costs
milliseconds, and no reply raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)\s*>", re.IGNORECASE)
_OPENING_FENCE = re.compile(r"^[ \t]{0,3}```(\w*)[ \t]*", re.MULTILINE)
_CLOSING_FENCE = re.compile(r"\n[ \t]{0,3}```")
_STRUCTURE = re.compile(r'[{}\[\]"\\\n]')
_OPENS_OBJECT = re.compile(r'\{\s*["}]')
_OPENS_ARRAY = re.compile(r'\[\s*[\]\["{\-\dtfn]')

_NONE = object()
LONGEST_REPAIR = 200_000
"""Characters beyond which a broken reply is not repaired: json-repair's time grows faster than the text."""
DEEPEST_REPAIR = 50


def extract_json(text: str) -> Any | None:
    """The one JSON object of a reply, or whatever JSON its fenced `json` block holds; `None` if there is none.

    An object inside prose must be strict JSON. A reply that is nothing but one pseudo-JSON object, fenced or
    bare, is repaired (trailing commas, line breaks in strings), provided that its first key is quoted.
    """
    answer = _without_reasoning(text)
    fenced, bare = _fenced_json(answer)
    if fenced is not _NONE:
        return fenced
    found = _only(bare, "{")
    return _repaired(answer) if found is _NONE else found


def extract_json_array(text: str) -> list[Any] | None:
    """The one top-level JSON array of a reply; `None` if there is none or several. Arrays in objects do not count."""
    answer = _without_reasoning(text)
    fenced, bare = _fenced_json(answer)
    if isinstance(fenced, list):
        return fenced
    found = _only(bare, "[")
    return found if isinstance(found, list) else None


# Reasoning and fences --------------------------------------------------------------------------------------


def _without_reasoning(text: str) -> str:
    # A reply that is JSON from end to end, or is after its leading blocks, may speak of such tags in its strings.
    text = text.strip()
    if _is_json(text):
        return text
    kept: list[str] = []
    position = depth = 0
    leading = True
    for tag in _TAG.finditer(text):
        closes = bool(tag[1])
        if depth == 0:
            before = text[position : tag.start()]
            if leading and position and before.strip():
                leading = False
                if _is_json(rest := text[position:].strip()):
                    return rest
            if closes:  # its opening stood in the prompt: all before it was reasoning
                kept.clear()
            else:
                kept.append(before)
        depth = max(0, depth - 1) if closes else depth + 1
        position = tag.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept).strip()


def _fences(text: str) -> Iterator[tuple[str, str, int, int]]:
    """(language, content, start, end) of each closed fenced block, and of a last one that nothing closes."""
    position = 0
    while opening := _OPENING_FENCE.search(text, position):
        start = opening.end()
        line_end = text.find("\n", start)
        on_line = text.rfind("```", start, len(text) if line_end < 0 else line_end)
        if on_line >= 0:  # one line: ```json {"a": 1} ```
            inside, end = text[start:on_line], on_line + 3
        elif closing := _CLOSING_FENCE.search(text, start):
            inside, end = text[start : closing.start()], closing.end()
        else:
            inside, end = text[start:], len(text)
        yield opening[1].lower(), inside, opening.start(), end
        position = end


def _fenced_json(text: str) -> tuple[Any, str]:
    """The value of the `json` blocks, if they agree, and the text without the blocks that hold none."""
    found: list[Any] = []
    rest: list[str] = []
    position = 0
    for language, inside, start, end in _fences(text):
        if language != "json":
            continue
        value = _strict(inside)
        if value is not _NONE:
            found.append(value)
        rest.append(text[position:start])
        position = end
    agreed = found[0] if found and all(value == found[0] for value in found) else _NONE
    return agreed, "" if found else "".join([*rest, text[position:]])


def _unfenced(text: str) -> str:
    """The content of the one block that the text is, or the text itself."""
    for language, inside, start, end in _fences(text):
        if language in ("json", "") and start == 0 and end == len(text):
            return inside.strip()
        break
    return text


# Strict reading --------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _strict(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # a number of more than 4,300 digits is a ValueError, too
        return _NONE
    return _encodable(value) if "\\ud" in text.lower() else value


def _encodable(value: Any) -> Any:
    # Half of a surrogate pair is legal in JSON's escapes but cannot be written to a file as UTF-8.
    raw = json.dumps(value, ensure_ascii=False)
    return json.loads(raw.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _is_json(text: str) -> bool:
    return text[:1] in ("{", "[", "`") and _strict(_unfenced(text)) is not _NONE


def _only(text: str, opening: str) -> Any:
    """The value of the one top-level span that begins with `opening` and is strict JSON."""
    found = _NONE
    for start, end in _top_level(text):
        if text[start] == opening and (value := _strict(text[start:end])) is not _NONE:
            if found is not _NONE:
                return _NONE
            found = value
    return found


def _top_level(text: str, *, strings_span_lines: bool = False) -> list[tuple[int, int]]:
    """Start and end of each balanced span that lies in no other, outside of strings.

    An opening brace without its partner hides nothing when it stands in prose (`{ braces`); when it begins
    JSON (`{"edits": [`) the document was cut off, and what follows is a part of it and no answer.
    """
    spans: list[tuple[int, int]] = []
    stack: list[int] = []
    for position in _structure(text, strings_span_lines):
        character = text[position]
        if character in "{[":
            stack.append(position)
        elif stack and text[stack[-1]] == ("{" if character == "}" else "["):
            start = stack.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, position + 1))
    for start in stack:
        if (_OPENS_OBJECT if text[start] == "{" else _OPENS_ARRAY).match(text, start):
            return [span for span in spans if span[1] <= start]
    return spans


def _structure(text: str, strings_span_lines: bool) -> Iterator[int]:
    """Positions of braces and brackets outside of strings. A quote that its line does not close is prose."""
    position = 0
    string_start = -1  # where the open string's quote stands
    plain_until = -1  # quotes before this position are prose
    while match := _STRUCTURE.search(text, position):
        at = match.start()
        position = at + 1
        character = match[0]
        if string_start < 0:
            if character in "{}[]":
                yield at
            elif character == '"' and at >= plain_until:
                string_start = at
        elif character == "\\":
            position = at + 2
        elif character == '"':
            string_start = -1
        elif character == "\n" and not strings_span_lines:
            position, plain_until, string_start = string_start + 1, at, -1
    if string_start >= 0 and not strings_span_lines:
        rest = _STRUCTURE.finditer(text, string_start + 1)
        yield from (match.start() for match in rest if match[0] in "{}[]")


# Repair ----------------------------------------------------------------------------------------------------


def _repaired(answer: str) -> Any | None:
    text = _unfenced(answer)
    if len(text) > LONGEST_REPAIR or not _OPENS_OBJECT.match(text) or not text.endswith("}"):
        return None
    if _top_level(text, strings_span_lines=True) != [(0, len(text))] or _depth(text) > DEEPEST_REPAIR:
        return None
    try:
        json.loads(text)
        return None  # only `NaN` and its like are read here and were refused before
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):  # a number too long, nested too deeply: not what repair is for
        return None
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return _encodable(value) if isinstance(value, dict) and value else None


def _depth(text: str) -> int:
    depth = deepest = 0
    for at in _structure(text, strings_span_lines=True):
        depth += 1 if text[at] in "{[" else -1
        deepest = max(deepest, depth)
    return deepest
