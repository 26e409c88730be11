"""Secrets, in two strengths.

*Configured credentials* are known exactly and are replaced in everything before it is used or stored, so that a
live and a resumed run see the same. *Patterns* (`store/patterns.py`) guess at unknown ones, and are applied only to
what people and tools read: logs, error texts, events, reports.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import attrs

from skillopt_kernel.store.patterns import MARKER, redact_diagnostics

MISTAKABLE = "a credential of fewer than 8 characters (12, if all are letters) is not taken out of what is stored"

_CLOSED = frozenset({"role", "ended", "reason"})
"""Fields of records whose words come from a closed list: no credential is meant, even if it is such a word."""


def unmistakable(credential: str) -> bool:
    """Whether a credential is replaced. Shorter ones occur in ordinary text ("test", "placeholder"), to its ruin."""
    return len(credential) >= (12 if credential.isalpha() else 8)


class Redactor:
    """Replaces configured credentials by a marker: those that are `unmistakable`, as they are and encoded."""

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        self._known = {form for each in credentials if unmistakable(text := each.strip()) for form in _forms(text)}
        longest_first = sorted(self._known, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def redact(self, text: str) -> str:
        """The text with each credential replaced, the longest first."""
        return self._pattern.sub(MARKER, text)

    def redact_value(self, value: Any) -> Any:
        """The same for every text in a JSON value or a record, keys included; in binary files by as many asterisks."""
        return self._redacted(value) if self._known else value

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {self._redacted(key): self._redacted(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._redacted(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, bytes):
            try:
                return self.redact(value.decode("utf-8")).encode("utf-8")
            except UnicodeDecodeError:  # another length would break its format
                return self._pattern.sub(lambda key: "*" * len(key[0]), value.decode("latin-1")).encode("latin-1")
        if attrs.has(type(value)):
            names = {field.name for field in attrs.fields(type(value))} - _CLOSED
            return attrs.evolve(value, **{name: self._redacted(getattr(value, name)) for name in names})
        return value

    def diagnostics(self, text: str) -> str:
        """For logs, error texts and events: without credentials, and without what looks like one."""
        return redact_diagnostics(self.redact(text))


def _forms(credential: str) -> Iterator[str]:
    """A credential as it stands in headers, addresses, JSON and JSON within JSON, and in base64 of a text around it."""
    yield credential
    for inner in _in_json(credential):
        yield from (inner, *_in_json(inner))
    data = credential.encode("utf-8", errors="surrogatepass")
    for escaped in (quote(data, safe=""), quote_plus(data)):
        yield from (escaped, re.sub("%..", lambda code: code[0].lower(), escaped))
    for before in range(3):  # bytes before it in its group of three: a "user:" can have any length
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        own = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]  # the characters that nothing else is in
        yield from (own, own.replace("+", "-").replace("/", "_"))


def _in_json(text: str) -> Iterator[str]:
    return (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
