"""Secrets, in two strengths.

*Configured credentials* are known exactly and are replaced in everything before it is used or stored, so that a
live and a resumed run see the same. *Patterns* (`redact_diagnostics`) guess at unknown ones, and are applied
only to what people and tools read: logs, error texts, events, reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

MARKER = "[redacted]"
SHORTEST_CREDENTIAL = 6
"""Shorter values are not replaced: they occur in ordinary text ("none", "test"), which would be destroyed."""

_CLOSED = frozenset({"role", "ended", "reason"})
"""Fields of records whose words come from a closed list: no credential is meant, even if it is such a word."""


class Redactor:
    """Replaces configured credentials by a marker, but for those that are shorter than `SHORTEST_CREDENTIAL`."""

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        known = {text for credential in credentials if len(text := credential.strip()) >= SHORTEST_CREDENTIAL}
        # Inside JSON text (a tool call's arguments) a quote or backslash of a credential is escaped.
        known |= {json.dumps(credential)[1:-1] for credential in known}
        longest_first = sorted(known, key=lambda credential: (-len(credential), credential))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def redact(self, text: str) -> str:
        """The text with each credential replaced, the longest first."""
        return self._pattern.sub(MARKER, text) if self._pattern else text

    def redact_value(self, value: Any) -> Any:
        """The same for every text in a JSON value or a record, keys and files that are text included."""
        return self._redacted(value) if self._pattern else value

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self._redacted(key): self._redacted(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._redacted(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, bytes):
            try:
                return self.redact(value.decode("utf-8")).encode("utf-8")
            except UnicodeDecodeError:
                return value  # binary: another length would break its format
        if attrs.has(type(value)):
            names = {field.name for field in attrs.fields(type(value))} - _CLOSED
            return attrs.evolve(value, **{name: self._redacted(getattr(value, name)) for name in names})
        return value

    def diagnostics(self, text: str) -> str:
        """For logs, error texts and events: credentials, and what looks like one."""
        return redact_diagnostics(self.redact(text))

    def clip(self, text: str, length: int) -> str:
        """At most `length` characters of the redacted text, never ending inside a marker.

        Redacted first: of a credential that is cut in half, the half would stay.
        """
        redacted = self.redact(text)
        if len(redacted) <= length:
            return redacted
        start = redacted.rfind(MARKER, max(0, length - len(MARKER) + 1), length + len(MARKER) - 1)
        return redacted[: start if 0 <= start < length else length]


_NAMED_SECRET = re.compile(
    r"""(?ix)
    \b( (?:proxy-)?authorization | (?:x-|openai-|azure-)?api[-_]?key | (?:access|auth)[-_]token | client[-_]secret
       | password )
    ( ["']? \s* [:=] \s* ["']? )
    (?: (bearer|basic|token) \s+ )?
    [^\s"',;&}]+
    """
)
_BEARER = re.compile(r"(?i)\b(bearer)\s+[A-Za-z0-9._~+/=-]{6,}")
_PROVIDER_KEY = re.compile(r"\b(?:sk|pk|ghp|gho|xoxb|xoxp)[-_][A-Za-z0-9_-]{12,}")
_LOGIN_IN_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@")


def redact_diagnostics(text: str) -> str:
    """An error text without what looks like a credential: Authorization headers, key=value pairs, provider keys.

    For what people read. Code that looks for marks of an error reads the raw text in memory.
    """
    text = _NAMED_SECRET.sub(lambda found: f"{found[1]}{found[2]}{MARKER}", text)
    text = _BEARER.sub(lambda found: f"{found[1]} {MARKER}", text)
    text = _PROVIDER_KEY.sub(MARKER, text)
    return _LOGIN_IN_ADDRESS.sub(lambda found: f"{found[1]}{MARKER}@", text)
