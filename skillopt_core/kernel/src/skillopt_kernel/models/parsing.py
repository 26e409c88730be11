"""JSON out of a model's reply: the one answer in it, or none; never a guess.

Reasoning blocks are taken away first. A fenced `json` block beats bare JSON. Of several answers that disagree
none is taken. Everything takes linear time, and no reply raises.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from skillopt_kernel.models.requests import whole_characters

_OPENS = r"<(?:think|thinking|reasoning)\s*>"
_CLOSES = r"</(?:think|thinking|reasoning)\s*>"
_LEADING_REASONING = re.compile(rf"(?is)\A(?:{_OPENS}.*?{_CLOSES}\s*)+")
_REASONING = re.compile(rf"(?is){_OPENS}.*?(?:{_CLOSES}|\Z)")
_END_OF_REASONING = re.compile(rf"(?i){_CLOSES}")

_JSON_BLOCK = re.compile(r"(?ism)^[ \t]*```json\b(.*?)(?:^[ \t]*```|```[ \t]*$|\Z)")
_OUTER_FENCE = re.compile(r"(?i)\A```(?:json)?\s|```\Z")

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*'
_STRINGS = re.compile(rf'(?s){_STRING}(?:"|\Z)')
_BEGINS_OBJECT = re.compile(rf'(?s)\{{\s*(?:\}}|{_STRING}"\s*:)|\[\s*\{{')
_BEGINS_ARRAY = re.compile(rf'{_BEGINS_OBJECT.pattern}|\[\s*(?:[\]\["\d-]|(?:true|false|null)\b)')
_FIRST_KEY_IS_QUOTED = re.compile(r'\{\s*["}]')

_NONE = object()


def extract_json(text: str) -> Any | None:
    """The one JSON object of a reply, or whatever JSON its fenced `json` block holds; `None` if there is none.

    An object inside prose must be strict JSON. A reply that is nothing but one pseudo-JSON object, fenced or
    bare, is repaired (trailing commas, line breaks in strings), provided that its first key is quoted.
    """
    answer = _without_reasoning(text)
    fenced, bare = _fenced_json(answer)
    if fenced is not _NONE:
        return fenced
    objects = [value for value in _values(bare, _BEGINS_OBJECT) if isinstance(value, dict)]
    if len(objects) > 1:
        return None
    return objects[0] if objects else _repaired(answer)


def extract_json_array(text: str) -> list[Any] | None:
    """The one top-level JSON array of a reply; `None` if there is none or several. Arrays in objects do not count."""
    fenced, bare = _fenced_json(_without_reasoning(text))
    values = [fenced] if isinstance(fenced, list) else _values(bare, _BEGINS_ARRAY)
    arrays = [value for value in values if isinstance(value, list)]
    return arrays[0] if len(arrays) == 1 else None


def _without_reasoning(text: str) -> str:
    text = text.strip()
    # A reply that is JSON from end to end, or is after its leading blocks, may speak of such tags in its strings.
    for answer in (text, _LEADING_REASONING.sub("", text)):
        if _strict(_OUTER_FENCE.sub("", answer)) is not _NONE:
            return answer
    # What stands before a closing tag is reasoning, even if its opening tag stood in the prompt.
    return _END_OF_REASONING.split(_REASONING.sub("", text))[-1].strip()


def _fenced_json(text: str) -> tuple[Any, str]:
    """The value of the `json` blocks, if they agree, and the text in which to look when they hold none."""
    found = [value for block in _JSON_BLOCK.findall(text) if (value := _strict(block)) is not _NONE]
    if not found:
        return _NONE, _JSON_BLOCK.sub("", text)
    return (found[0] if all(value == found[0] for value in found) else _NONE), ""


def _values(text: str, begins: re.Pattern[str]) -> list[Any]:
    """The JSON values of a text that lie in no other.

    A brace in prose hides nothing (`{ braces`). What begins like JSON and is none ends the search: it was cut
    off or is broken, and what follows may be a part of it and no answer.
    """
    found: list[Any] = []
    position = 0
    while opening := begins.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
            found.append(_writable(value))
        except (ValueError, RecursionError):
            break
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _writable(value: Any) -> Any:
    # JSON's escapes can name half of a surrogate pair, which UTF-8 cannot express.
    return json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))


def _strict(text: str) -> Any:
    try:
        return _writable(_DECODER.decode(text))
    except (ValueError, RecursionError):  # a number of more than 4,300 digits is a ValueError, too
        return _NONE


def _repaired(answer: str) -> Any | None:
    text = _OUTER_FENCE.sub("", answer).strip()
    if not _FIRST_KEY_IS_QUOTED.match(text) or not text.endswith("}"):
        return None
    outside = _STRINGS.sub("", text)
    if outside.count("{") != outside.count("}") or outside.count("[") != outside.count("]"):
        return None
    import json_repair

    try:
        # What is wrong must be the form: `NaN`, a number too long or deep nesting is not what repair is for.
        with suppress(json.JSONDecodeError):
            _DECODER.decode(text)
        # Strict: one object, and no key twice.
        value = _writable(json_repair.loads(text, skip_json_loads=True, strict=True))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None
