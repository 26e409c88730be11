"""The published scorer's rules, written anew, and the rule of earlier trainers beside it.

Source of the published rules: `reward.py` of github.com/databricks/officeqa, and arXiv 2603.08655: an answer is right
when its numbers lie within a relative tolerance of the reference's. Tolerances of 0, 0.1, 1 and 5 % are reported.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from decimal import Decimal

from attrs import frozen

from skillopt_env_officeqa.numbers import Number, numbers_in, words_in

TOLERANCES = {"official_0": 0.0, "official_0.1": 0.001, "official_1": 0.01, "official_5": 0.05}
"""Name of a score -> relative error that it allows: those that are published."""

LONGEST_ANSWER = 250
_OPEN, _CLOSE = "<final_answer>", "</final_answer>"
_MARKUP = re.compile(r"\*\*|__|`|\\[a-zA-Z]|</?[a-zA-Z]|^\s*#|\|")
_BRACKETED = re.compile(r"\([^()]*\)")


@frozen
class Verdict:
    """Whether an answer is right, and why it is not."""

    right: bool
    reason: str = ""


def judged(answer: str, reference: str, tolerance: float) -> Verdict:
    """What the published rules say of `answer`. `tolerance`: the relative error that each number may have."""
    answer, reference = _final(answer).strip(), reference.strip()
    if not answer or not reference:
        return Verdict(False, "there is no answer")
    if problem := _not_direct(answer):
        return Verdict(False, problem)
    wanted, given = numbers_in(reference), numbers_in(answer)
    if not wanted or not given:
        return _texts(answer, reference)
    if not words_in(reference) and not any(number.may_be_a_year for number in wanted):
        given = [number for number in given if not number.may_be_a_year] if len(given) > len(wanted) else given
    if len(given) != len(wanted):
        return Verdict(False, f"{_count(given)} where the answer has {_count(wanted)}")
    if not _contains(words_in(answer), words_in(reference)):
        return Verdict(False, f"the words {' '.join(words_in(reference))!r} are missing")
    return _numbers(given, wanted, tolerance, in_order=reference.startswith("[") or len(wanted) == 1)


def earlier_scores(answer: str, reference: str) -> tuple[float, float]:
    """Exact match and token F1 by the rule of earlier trainers, which dropped words of scale and knew no numbers."""
    given, wanted = _earlier_text(answer), _earlier_text(reference)
    if not given or not wanted:
        same = float(given == wanted)
        return same, same
    left, right = given.split(), wanted.split()
    common = sum((Counter(left) & Counter(right)).values())
    return float(given == wanted), 2 * common / (len(left) + len(right))


def earlier_answer(reply: str) -> str:
    """The answer that earlier trainers took from a reply: of the first pair of tags, else the last line with text."""
    _, opened, rest = _partition(reply, "<answer>")
    text, closed, _ = _partition(rest, "</answer>")
    if opened and closed:
        return text.strip()
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _partition(text: str, tag: str) -> tuple[str, str, str]:
    """As `str.partition`, whatever the tag's letter case. One pass, however many tags there are."""
    found = re.search(re.escape(tag), text, re.IGNORECASE | re.ASCII)
    return (text[: found.start()], found[0], text[found.end() :]) if found else (text, "", "")


def _final(answer: str) -> str:
    """What the last pair of the published tags holds, else the whole answer."""
    closes = [match.start() for match in re.finditer(_CLOSE, answer, re.IGNORECASE | re.ASCII)]
    opens = [match.end() for match in re.finditer(_OPEN, answer, re.IGNORECASE | re.ASCII)]
    opened = [place for place in opens if closes and place <= closes[-1]]
    return answer[opened[-1] : closes[-1]] if opened else answer


def _not_direct(answer: str) -> str:
    """Why a text is no direct answer, "" when it is one."""
    if "\n" in answer:
        return "the answer has several lines; it must be one"
    if len(answer) > LONGEST_ANSWER:
        return f"the answer has {len(answer)} characters; it must be short (at most {LONGEST_ANSWER})"
    if _MARKUP.search(answer):
        return "the answer has markup; it must be plain text"
    return ""


def _texts(answer: str, reference: str) -> Verdict:
    def comparable(text: str) -> str:
        return " ".join(_BRACKETED.sub(" ", text.lower()).strip().strip("\"'").split())

    if comparable(answer) and comparable(answer) == comparable(reference):
        return Verdict(True)
    return Verdict(False, "the text differs" if not numbers_in(reference) else "the answer has no number")


def _contains(words: list[str], wanted: list[str]) -> bool:
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _numbers(given: list[Number], wanted: list[Number], tolerance: float, *, in_order: bool) -> Verdict:
    """Compare numbers, as many on both sides; `in_order`: place by place, else each with one that fits it."""
    left = list(given)
    for place, number in enumerate(wanted, start=1):
        fitting = [other for other in (left[:1] if in_order else left) if _off(other, number, tolerance) == ""]
        if not fitting:
            which = f"number {place} of {len(wanted)}: " if len(wanted) > 1 else ""
            swapped = in_order and any(_off(other, number, tolerance) == "" for other in given)
            return Verdict(False, which + ("in the wrong order" if swapped else _off(left[0], number, tolerance)))
        left.remove(fitting[0])
    return Verdict(True)


def _off(given: Number, wanted: Number, tolerance: float) -> str:
    """Why a number does not fit, "" when it does."""
    if given.unit and wanted.unit and given.unit != wanted.unit:
        return f"the scale is {given.unit}, not {wanted.unit}"
    difference, size = abs(given.value - wanted.value), abs(wanted.value)
    if difference <= size * Decimal(str(tolerance)):
        return ""
    if given.value == -wanted.value:
        return "the sign is wrong"
    return "it is off by " + (f"{float(100 * difference / size):.3g} %" if size else f"{float(difference):g} from 0")


def _earlier_text(text: str) -> str:
    text = text.lower().strip().replace(",", "")
    text = text.translate(str.maketrans("", "", "".join(set(string.punctuation) - set(".-%"))))
    return " ".join(re.sub(r"\b(?:millions?|billions?|dollars?|nominal)\b", " ", text).split())


def _count(numbers: list[Number]) -> str:
    return "1 number" if len(numbers) == 1 else f"{len(numbers)} numbers"
