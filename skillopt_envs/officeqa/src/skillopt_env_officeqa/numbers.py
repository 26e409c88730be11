"""The numbers in an answer: values, signs, units, and the words that are left."""

from __future__ import annotations

import re
from decimal import Decimal

from attrs import frozen

UNITS = {"trillion": "trillion", "billion": "billion", "million": "million", "thousand": "thousand",
         "b": "billion", "m": "million", "k": "thousand"}  # fmt: skip
"""Words of scale -> the scale."""

_DIGITS = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<before>(?<![\w.])-)?\s*[$€£¥]?\s*(?P<after>(?<=[$€£¥])-)?"
    rf"(?P<digits>{_DIGITS})\s*%?\s*(?P<close>\))?"
)
_UNIT = re.compile(r"\b(?:(trillion|billion|million|thousand)s?|([bmk]))\b")
_NO_WORDS = re.compile(r"\b(?:(?:trillion|billion|million|thousand|hundred)s?|percent(?:age)?|[bmk])\b|[^\w\s]")
_YEARS = range(1900, 2101)


@frozen
class Number:
    """One number of a text. `unit`: the scale named in its neighbourhood, "" for none."""

    value: Decimal
    unit: str = ""

    @property
    def may_be_a_year(self) -> bool:
        """Whether it could be a year that is only mentioned: a whole number from 1900 to 2100, in brackets too."""
        return abs(self.value) == abs(self.value).to_integral_value() and int(abs(self.value)) in _YEARS


def numbers_in(text: str) -> list[Number]:
    """The numbers of `text` in order. Thousands commas and currency signs are read, and (3.2) is minus 3.2."""
    text = plain(text)
    found = list(_NUMBER.finditer(text))
    ends = [match.start("digits") for match in found[1:]] + [len(text)]
    return [
        Number(_value(match), _unit_after(text[match.end("digits") : end]))
        for match, end in zip(found, ends, strict=False)
    ]


def plain(text: str) -> str:
    """`text` with the minus sign of Unicode as a hyphen, in lower case."""
    return text.replace("\u2212", "-").lower()


def words_in(text: str) -> list[str]:
    """The words of `text` that are neither numbers nor units, in lower case."""
    return _NO_WORDS.sub(" ", _NUMBER.sub(" ", plain(text))).split()


def _value(match: re.Match[str]) -> Decimal:
    value = Decimal(match["digits"].replace(",", ""))
    in_brackets = bool(match["open"] and match["close"])
    return -value if match["before"] or match["after"] or in_brackets else value


def _unit_after(text: str) -> str:
    """The scale that stands between a number and the next one."""
    found = _UNIT.search(text)
    return UNITS[found[1] or found[2]] if found else ""
