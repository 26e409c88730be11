"""Numbers as people write them, with what stands after them: `1,250.5`, `−3e8 m/s`, `$1.2 million`, `3/4`, `12 %`."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from attrs import frozen

_GROUPING = ",'’_\u00a0\u202f\u2009"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SCALES = {
    "thousand": 3, "million": 6, "mn": 6, "mio": 6, "billion": 9, "bn": 9, "trillion": 12, "tn": 12,
}  # fmt: skip
CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
"""Sign -> code; a code stands for itself."""
_CODES = frozenset({*CURRENCIES.values(), "CHF", "CAD", "AUD", "CNY", "SEK", "NOK", "DKK", "PLN", "BRL", "MXN", "KRW"})
_MOST_WORDS_OF_A_UNIT = 4


def _pattern(point: str, grouping: str) -> re.Pattern[str]:
    """One number. What could be read in two ways (`1,5` where a comma groups) is none.

    Quantifiers are possessive, so that no text takes more than linear time.
    """
    whole = rf"\d{{1,3}}(?:[{grouping}]\d{{3}})++|\d++"
    number = rf"(?:(?:{whole})(?:{point}\d++)?|{point}\d++)"
    return re.compile(
        rf"(?<![\w.,^])(?<!\*\*)(?<![A-Za-z²³)][-−–])(?P<currency>[$€£¥₹]|\b[A-Z]{{3}}\b)?\s?(?P<sign>[-+−–])?\s?(?P<currency2>[$€£¥₹])?"
        rf"(?P<number>{number})(?![.,]?\d)"
        rf"(?:\s?[/⁄]\s?(?P<below>\d++)(?![.,/⁄]?\d))?"
        rf"(?:[eE](?P<exponent>[-+−]?\d{{1,3}})(?!\w)|\s?[×x*·]\s?10(?:\^|\*\*)?\{{?(?P<power>[-−⁻]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}})\}}?)?"
        rf"(?:\s*(?P<scale>(?i:{'|'.join(_SCALES)})s?\b))?"
    )


_POINT = _pattern(r"\.", _GROUPING)
_COMMA = _pattern(",", r".'’_\u00a0\u202f\u2009")
_UNIT_WORD = re.compile(r"\s*+([%‰]|[^\W\d_][\w^*/·⁻⁰-⁹²³¹-]{0,24}|°\s?[\w/]{0,24}|[$€£¥₹])")


@frozen
class Quantity:
    """A number and what may be its unit: `words` are the texts after it that could be one, the longest first."""

    value: Decimal
    currency: str | None
    words: tuple[str, ...]
    text: str


def quantities(text: str, decimal_comma: bool = False) -> list[Quantity]:
    """The numbers in a text, in order."""
    return [_quantity(found, text) for found in (_COMMA if decimal_comma else _POINT).finditer(text)]


def _quantity(found: re.Match[str], text: str) -> Quantity:
    comma = found.re is _COMMA
    digits = re.sub(r"[.'’_\u00a0\u202f\u2009]" if comma else f"[{_GROUPING}]", "", found["number"])
    value = Decimal(digits.replace(",", "."))
    if found["below"]:
        below = Decimal(found["below"])
        value = value / below if below else Decimal("NaN")
    exponent = (found["exponent"] or found["power"] or "0").translate(_SUPERSCRIPTS).replace("−", "-")
    power = int(exponent) + _SCALES.get((found["scale"] or "").lower().removesuffix("s"), 0)
    value = value.scaleb(power) if power else value
    if found["sign"] in ("-", "−", "–"):
        value = value.copy_negate()
    sign = found["currency"] or found["currency2"]
    currency = CURRENCIES.get(sign or "", sign)
    return Quantity(value, currency if currency in _CODES else None, _words(text, found.end()), found[0].strip())


def _words(text: str, start: int) -> tuple[str, ...]:
    """What follows a number and may be its unit, the longest first: "km / h", "km"."""
    ends: list[int] = []
    place = start
    while len(ends) < _MOST_WORDS_OF_A_UNIT and (word := _UNIT_WORD.match(text, place)):
        place = word.end()
        ends.append(place)
    return tuple(text[start:end].strip() for end in reversed(ends))


def currency_of(quantity: Quantity) -> str | None:
    """The currency before or after the number, as its code."""
    if quantity.currency or not quantity.words:
        return quantity.currency
    word = quantity.words[-1].partition(" ")[0]
    code = CURRENCIES.get(word, word.upper())
    return code if code in _CODES else None


def unit_of(quantity: Quantity, known: Callable[[str], bool], converts: Callable[[str], bool]) -> str | None:
    """The unit after the number, "%" included: the longest text that `converts`, else the shortest that is a unit.

    Not simply the longest: in "100 m in total" the words "m in" would be a unit as well, metre times inch.
    """
    units = [words for words in quantity.words if words == "%" or known(words)]
    return next(filter(converts, units), units[-1] if units else None)
