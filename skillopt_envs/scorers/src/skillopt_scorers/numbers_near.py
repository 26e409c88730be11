"""The scorer `numeric`: a number within a tolerance of the reference, with units that convert."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from attrs import frozen
from skillopt_kernel.records import Score

from skillopt_scorers.accepted import named, quoted
from skillopt_scorers.quantities import Quantity, currency_of, is_percent, plain, quantities, unit_of, without_unit
from skillopt_scorers.settings import NumericSettings
from skillopt_scorers.units import Units

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task

_ROUNDING = Decimal("1e-9")
"""What a conversion between units may lose, as a share."""


@frozen
class _Wanted:
    """One accepted number; `unit` as the reference writes it, `currency` as a code."""

    value: Decimal
    unit: str | None
    currency: str | None
    text: str


class NumericScorer:
    """hard = soft = 1 when the answer's number is within a tolerance of an accepted one.

    An answer without a unit is taken in the reference's (`unit: optional`); with another one it is converted. Of a
    reference without a unit, words after the answer's number do not matter, but `50 %` is 0.5. Numbers are compared
    as written in decimal, not as binary fractions.
    """

    def __init__(self, settings: NumericSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or NumericSettings()
        self._units = Units()

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is no number, and `ConfigError` where a unit needs a library."""
        self._accepted(reference)

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one number, as such or as text, or a list. Raises as `check`."""
        accepted = self._accepted(reference)
        shown = named([each.text for each in accepted])
        found = quantities(plain(answer), self._settings.decimal_comma)
        if not answer.strip():
            return Score(0.0, 0.0, f"Wrong: there is no answer; accepted: {shown}.")
        if not found:
            return Score(0.0, 0.0, f"Wrong: {quoted(answer)} holds no number that can be read; accepted: {shown}.")
        if len(found) > 1 and self._settings.take == "only":
            return Score(
                0.0,
                0.0,
                f"Wrong: {quoted(answer)} holds {len(found)} numbers, and one was asked for; accepted: {shown}.",
            )
        given = found[-1 if self._settings.take == "last" else 0]
        reasons = [self._difference(given, each) for each in accepted]
        if None in reasons:
            return Score(1.0, 1.0, "Right.")
        return Score(0.0, 0.0, f"Wrong: answered {quoted(answer)}; accepted: {shown}. {reasons[0]}")

    def _accepted(self, reference: Any) -> list[_Wanted]:
        several = isinstance(reference, Sequence) and not isinstance(reference, str)
        values = list(reference) if several else [reference]
        if not values:
            raise ValueError("the list of accepted numbers is empty, so that no answer could be right")
        return [self._wanted(each) for each in values]

    def _wanted(self, value: Any) -> _Wanted:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"a reference must be a number, as such or as text, or a list of them, not {value!r:.200}")
        text = str(value)
        shown = plain(text).strip()
        found = quantities(shown, self._settings.decimal_comma and isinstance(value, str))
        if len(found) != 1 or not found[0].value.is_finite():
            raise ValueError(f"the reference {text!r:.200} must hold exactly one finite number")
        one = found[0]
        rest = shown[shown.find(one.text) + len(one.text) :].strip(" .")
        currency = None if self._settings.unit == "ignored" else currency_of(one)
        if self._settings.unit == "ignored" or not rest or currency:
            return _Wanted(one.value, None, currency, text)
        if is_percent(rest):
            return _Wanted(one.value, "%", None, text)
        if not self._units.known(rest):
            raise ValueError(
                f"the reference {text!r:.200} ends with {rest!r:.60}, which is no unit that is known; write a unit as "
                f"`km/h` or `m**2`, or set `unit: ignored`"
            )
        return _Wanted(one.value, rest, None, text)

    def _difference(self, given: Quantity, wanted: _Wanted) -> str | None:
        """Why the answer is not this accepted number, or `None` when it is."""
        value, problem, slack = self._in_unit_of(given, wanted)
        if problem or not value.is_finite():
            return problem or "The answer's number is not finite."
        if value == wanted.value:
            return None
        with localcontext() as exact:
            exact.prec = 60
            off = abs(value - wanted.value)
            relative = Decimal(repr(self._settings.relative_tolerance)) + slack
            allowed = max(relative * abs(wanted.value), Decimal(repr(self._settings.absolute_tolerance)))
            if off <= allowed:
                return None
            share = f", {_short(off / abs(wanted.value) * 100)} %" if wanted.value else ""
        way = "large" if value > wanted.value else "small"
        tolerated = f"; {_short(allowed)} is tolerated" if allowed else ""
        return f"The number is too {way} by {_short(off)}{share}{tolerated}."

    def _in_unit_of(self, given: Quantity, wanted: _Wanted) -> tuple[Decimal, str, Decimal]:
        """The answer's number in the reference's unit, or what is wrong; and what rounding may have cost."""
        none = Decimal(0)
        if self._settings.unit == "ignored":
            return given.value, "", none
        if wanted.unit is None:
            return self._against_plain(given, wanted)
        if wanted.unit == "%":
            unit: str | None = "%" if any(map(is_percent, given.words)) else None
        else:
            unit = unit_of(given, self._units.known, lambda text: self._converted(given, text, wanted.unit) is not None)
        if unit is None and currency_of(given) is None:
            lacks = f"The answer lacks the unit {wanted.unit}." if self._settings.unit == "required" else ""
            return given.value, lacks, none
        if unit == wanted.unit:
            return given.value, "", none
        converted = self._converted(given, unit, wanted.unit)
        if converted is None:
            return given.value, f"The answer's unit, {unit or 'money'}, does not convert to {wanted.unit}.", none
        return Decimal(repr(converted)), "", _ROUNDING

    def _converted(self, given: Quantity, unit: str | None, wanted: str | None) -> float | None:
        if unit is None or wanted is None or "%" in (unit, wanted):
            return None
        return self._units.converted(float(given.value), unit, wanted)

    def _against_plain(self, given: Quantity, wanted: _Wanted) -> tuple[Decimal, str, Decimal]:
        """As `_in_unit_of`, for a reference without a unit or in money."""
        currency = currency_of(given)
        if wanted.currency and currency != wanted.currency:
            if currency:
                return given.value, f"The answer is in {currency}, not in {wanted.currency}.", Decimal(0)
            if self._settings.unit == "required":
                return given.value, f"The answer lacks the currency {wanted.currency}.", Decimal(0)
        return without_unit(given), "", Decimal(0)


def _short(number: Decimal) -> str:
    return f"{float(number):.4g}" if number.adjusted() < 300 else f"{number:.3g}"
