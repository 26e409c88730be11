"""Units of measurement by pint, which the extra `units` brings: loaded with the first unit that is met."""

from __future__ import annotations

import re
import threading
from functools import cached_property
from typing import Any

from skillopt_scorers.extras import needed

# Only what names units reaches pint's parser: it evaluates arithmetic, and an answer must not make it count.
_UNIT = re.compile(r"[^\W\d_][\w °*/·^-]{0,60}|°\s?\w[\w °*/·^-]{0,60}")
_LARGE_EXPONENT = re.compile(r"\d{2}|(?:\*\*|\^)\s*-?\d\s*(?:\*\*|\^)")


class Units:
    """One registry of units, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def known(self, text: str) -> bool:
        """Whether a text names a unit."""
        return self._parsed(text) is not None

    def converted(self, value: float, unit: str, wanted: str) -> float | None:
        """`value` in `unit` as a number of `wanted`; `None` when one does not convert to the other."""
        given, target = self._parsed(unit), self._parsed(wanted)
        if given is None or target is None:
            return None
        with self._lock:
            try:
                return float(self._registry.Quantity(value, given).to(target).magnitude)
            except (self._pint.PintError, ArithmeticError, ValueError):
                return None

    @cached_property
    def _pint(self) -> Any:
        with needed("units", "units of measurement"):
            import pint
        return pint

    @cached_property
    def _registry(self) -> Any:
        return self._pint.UnitRegistry()

    def _parsed(self, text: str) -> Any:
        text = text.replace("·", "*").strip()
        if not _UNIT.fullmatch(text) or _LARGE_EXPONENT.search(text):
            return None
        with self._lock:
            for spelling in dict.fromkeys((text, text.lower())):
                try:
                    return self._registry.parse_units(spelling)
                except (self._pint.PintError, ValueError, TypeError, AttributeError, SyntaxError, RecursionError):
                    continue
                except Exception as error:  # pint's tokenizer raises what Python's does
                    if type(error).__module__ not in ("tokenize", "pint.pint_eval"):
                        raise
        return None
