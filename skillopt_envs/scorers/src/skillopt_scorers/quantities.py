"""Numbers as people write them, with what stands after them: `1,250.5`, `−3e8 m/s`, `$1.2 million`, `3/4`, `12 %`."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from attrs import frozen

_GROUPING = ",'’_\u00a0\u202f\u2009"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_FRACTIONS = {
    ord(sign): f" {over}/{under}"
    for sign, over, under in zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒",
        (1, 1, 2, 1, 3, 1, 2, 3, 4, 1, 5, 1, 1, 3, 5, 7, 1, 1),
        (2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 8, 8, 8, 9, 10),
        strict=True,
    )
}
_SCALES = {
    "thousand": 3, "million": 6, "mn": 6, "mio": 6, "billion": 9, "bn": 9, "trillion": 12, "tn": 12,
}  # fmt: skip
_LETTERS = {"K": 3, "M": 6, "B": 9, "T": 12}
_LARGEST_POWER = 400
CURRENCIES = {
    "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "dollar": "USD", "dollars": "USD", "euro": "EUR",
    "euros": "EUR", "yen": "JPY", "rupees": "INR", "cent": "cents", "cents": "cents",
}  # fmt: skip
"""Sign or word -> code; a code stands for itself."""
_CODES = frozenset({*CURRENCIES.values(), "CHF", "CAD", "AUD", "CNY", "SEK", "NOK", "DKK", "PLN", "BRL", "MXN", "KRW"})
_PERCENT = re.compile(r"%|(?:percent|per cent|pct)\b", re.IGNORECASE)
_MOST_WORDS_OF_A_UNIT = 4

_LATEX = re.compile(
    r"\\(?:d|t)?frac\s?\{\s?(?P<over>\d{1,30})\s?\}\s?\{\s?(?P<under>\d{1,30})\s?\}"
    r"|\\(?:text|textrm|mathrm|mbox|unit)\s?\{(?P<text>[^{}]{0,60})\}|(?P<degree>\^\s?\\circ|\^\{\\circ\})"
    r"|(?P<space>\\[,;:! ])|\\(?P<sign>[%$])|(?P<comma>\{,\})|(?P<times>\\times|\\cdot)"
)
_MATHEMATICS = re.compile(r"\$(?=[^\s$])([^$]{0,200}?)(?<=[^\s$])\$(?!\d)")
_DEGREE = re.compile(r"°\s(?=[CFK]\b)")
_EMPHASIS = re.compile(r"(?<![\w*)\]])(\*{1,3}|_{1,3}|`{1,3})(?=[^\s*_`])([^*_`\n]{1,200}?)(?<=[^\s*_`])\1(?![\w*(])")


def plain(text: str) -> str:
    """The text without what Markdown and LaTeX put around numbers and units; `½` as ` 1/2`."""
    text = _MATHEMATICS.sub(r"\1", _EMPHASIS.sub(r"\2", text.translate(_FRACTIONS)))
    text = _LATEX.sub(_unlatexed, text) if "\\" in text or "{" in text else text
    return _DEGREE.sub("°", text)


def _unlatexed(found: re.Match[str]) -> str:
    if found["over"]:
        return f" {found['over']}/{found['under']}"
    if found["text"] is not None:
        return f" {found['text']}"
    if found["times"]:
        return "×"
    return found["sign"] or ("," if found["comma"] else "°" if found["degree"] else " ")


def _pattern(point: str, grouping: str) -> re.Pattern[str]:
    """One number. What could be read in two ways (`1,5` where a comma groups) is none.

    Quantifiers are possessive, so that no text takes more than linear time.
    """
    whole = rf"\d{{1,3}}(?:[{grouping}]\d{{3}})++|\d++"
    number = rf"(?:(?:{whole})(?:{point}\d++)?|{point}\d++)"
    return re.compile(
        rf"(?<![\w.,^])(?<!\*\*)(?<![A-Za-z²³)][-−–])(?P<currency>[$€£¥₹]|\b[A-Z]{{3}}\b)?\s?"
        rf"(?P<sign>[-+−–]|(?i:minus|negative)\b)?\s?(?P<currency2>[$€£¥₹])?"
        rf"(?P<number>{number})(?![.,]?\d)"
        rf"(?:(?:\^|\*\*)\{{?(?P<raised>[-−]?\d{{1,3}})\}}?(?!\d)|(?<=10)(?P<superscript>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}}))?"
        rf"(?:\s(?<=\d\s)(?P<top>\d{{1,3}})[/⁄](?P<bottom>\d{{1,3}})(?![\d.,/⁄]))?"
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
    """The numbers in a `plain` text, in order."""
    return [_quantity(found, text) for found in (_COMMA if decimal_comma else _POINT).finditer(text)]


def _quantity(found: re.Match[str], text: str) -> Quantity:
    comma = found.re is _COMMA
    digits = re.sub(r"[.'’_\u00a0\u202f\u2009]" if comma else f"[{_GROUPING}]", "", found["number"])
    value = _raised(Decimal(digits.replace(",", ".")), found["raised"] or found["superscript"])
    if found["top"]:
        value += _divided(Decimal(found["top"]), found["bottom"])
    if found["below"]:
        value = _divided(value, found["below"])
    power = _whole(found["exponent"] or found["power"]) + _SCALES.get(
        (found["scale"] or "").lower().removesuffix("s"), 0
    )
    value = value.scaleb(power) if power else value
    if found["sign"] and found["sign"] != "+":
        value = value.copy_negate()
    sign = found["currency"] or found["currency2"]
    currency = CURRENCIES.get(sign or "", sign)
    return Quantity(value, currency if currency in _CODES else None, _words(text, found.end()), found[0].strip())


def _whole(exponent: str | None) -> int:
    return int((exponent or "0").translate(_SUPERSCRIPTS).replace("−", "-"))


def _divided(value: Decimal, below: str) -> Decimal:
    divisor = Decimal(below)
    return value / divisor if divisor else Decimal("NaN")


def _raised(value: Decimal, exponent: str | None) -> Decimal:
    """The power; what is larger than any number that is asked for is none."""
    if not exponent:
        return value
    power = _whole(exponent)
    if not value or abs(value.adjusted() * power) > _LARGEST_POWER:
        return Decimal(0) if not value and power > 0 else Decimal("NaN")
    return value**power


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
    code = CURRENCIES.get(word) or CURRENCIES.get(word.lower(), word.upper())
    return code if code in _CODES else None


def is_percent(text: str) -> bool:
    """Whether a unit begins with per cent, as a sign or in words."""
    return bool(_PERCENT.match(text))


def without_unit(quantity: Quantity) -> Decimal:
    """The number that a per cent or per mille sign, or a letter for thousands and more, makes of it: `5M`, `$3bn`."""
    if quantity.currency is None and any(map(is_percent, quantity.words)):
        return quantity.value.scaleb(-2)
    word = quantity.words[-1] if quantity.words else ""
    if word.startswith("‰"):
        return quantity.value.scaleb(-3)
    letter = word.upper() if quantity.currency or word in ("k", *_LETTERS) else ""
    return quantity.value.scaleb(_LETTERS.get(letter, 0))


def unit_of(quantity: Quantity, known: Callable[[str], bool], converts: Callable[[str], bool]) -> str | None:
    """The unit after the number, "%" included: the longest text that `converts`, else the shortest that is a unit.

    Not simply the longest: in "100 m in total" the words "m in" would be a unit as well, metre times inch.
    """
    units = [words for words in quantity.words if is_percent(words) or known(words)]
    return next(filter(converts, units), units[-1] if units else None)
