"""The rules of gitleaks, read as data: what a rule says is a credential, and what it says is none.

Format: the `[[rules]]` of a gitleaks configuration. A rule has a regular expression (of Go), `keywords` one of which
is in every text that it matches, mostly an `entropy` that a secret must exceed, and allow lists of what is none.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

OVER_LINES = (".*", "(?s:", r"[\s\S")
"""Rules with one of these match whole lines or files (curl commands, key files); the general patterns see to them."""
ANY_NAME_BEFORE = r"[\w.-]{0,50}?"
"""Costs fifty tries at each place and decides nothing: the expression is searched for anyway."""
SHORTEST_GROUP = 10
_PLAIN = re.compile(r"[0-9a-fA-F-]+|[0-9_.:,-]+")
"""Digests, UUIDs, numbers, times: never a credential by its look alone."""


class Rule:
    """One rule. Its expression is compiled when it is first asked for."""

    def __init__(self, entry: Mapping[str, Any], allowed_everywhere: Mapping[str, Any]) -> None:
        self.name: str = entry["id"]
        self.keywords: tuple[str, ...] = tuple(entry.get("keywords", ()))
        self._pattern: str = entry["regex"]
        self._entropy: float = entry.get("entropy", 0.0)
        self._group: int = entry.get("secretGroup", 0)
        self._allowed = [allowed_everywhere, *(each for each in entry.get("allowlists", ()) if "paths" not in each)]

    def find(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Where there are secrets between two places of a text, as `SecretFinder.find` says."""
        for match in self._expression.finditer(text, start, end):
            group = self._secret_group(match)
            if not self._harmless(match[group], match[0]):
                yield (*match.span(group), self.name)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(python_pattern(self._pattern.replace(ANY_NAME_BEFORE, "")))

    def _secret_group(self, match: re.Match[str]) -> int:
        """The group that is the secret: as given, else the first that took part; 0, the whole, if that is short."""
        if self._group or match.re.groupindex:  # named groups tell kinds of the whole apart
            return self._group
        first = next((number for number, taken in enumerate(match.groups(), 1) if taken), 0)
        return first if len(match[first]) >= SHORTEST_GROUP else 0

    def _harmless(self, secret: str, whole: str) -> bool:
        if _PLAIN.fullmatch(secret) or entropy(secret) <= self._entropy:
            return True
        lowered = secret.lower()
        return any(
            any(word in lowered for word in allowed.get("stopwords", ()))
            or any(each.search(whole if allowed.get("regexTarget") == "match" else secret) for each in expressions)
            for allowed, expressions in zip(self._allowed, self._allowed_expressions, strict=True)
        )

    @cached_property
    def _allowed_expressions(self) -> Sequence[Sequence[re.Pattern[str]]]:
        return [[re.compile(python_pattern(each)) for each in allowed.get("regexes", ())] for allowed in self._allowed]


def rules_file() -> Path:
    """Where the rules are. Raises `FileNotFoundError` when the package that carries them is damaged."""
    # As data: the package is not imported, for it compiles every rule.
    path = Path(str(distribution("secretscreen").locate_file("secretscreen/gitleaks.toml")))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; install secretscreen again")
    return path


def gitleaks_rules(path: Path) -> list[Rule]:
    """Those that look at single words and not at whole files."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Rule(entry, told["allowlist"])
        for entry in told["rules"]
        if "regex" in entry and not any(mark in entry["regex"] for mark in OVER_LINES)
    ]


def python_pattern(pattern: str) -> str:
    r"""A regular expression of Go as one of Python: `(?i)` up to the end of its group, `\z`, `[[:alnum:]]`."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[0-9A-Za-z]")
    while (at := pattern.find("(?i)", 1 if pattern.startswith("(?i)") else 0)) > 0:
        end = _end_of_group(pattern, at + 4)
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    return pattern


def _end_of_group(pattern: str, start: int) -> int:
    """Where the group around `start` is closed, or the end of the pattern."""
    depth, in_class, escaped = 0, False, False
    for at in range(start, len(pattern)):
        char = pattern[at]
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth < 0:
                return at
    return len(pattern)


def entropy(text: str) -> float:
    """Bits a character, of the frequencies of the text's own characters (Shannon 1948)."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
