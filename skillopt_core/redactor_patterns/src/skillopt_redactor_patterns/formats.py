"""Finding credentials fast: only words that could be one are looked at, and only with rules whose keyword is near.

Most text is ruled out by splitting it into words: a credential of a known format is in a long word, with at least ten
letters and digits in a row that look random: with a digit, with capitals among small letters as no name has them, or
all capitals; and that are no digest and no number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from skillopt_redactor_patterns.rules import Rule, gitleaks_rules, rules_file

SHORTEST = 12
"""Characters of a word: no rule matches a shorter secret."""
BEFORE = 80
"""How far before a word its keyword may stand: the longest is followed by 20 further characters of its name."""
_ROW = re.compile(r"[0-9A-Za-z~+%|]{10,}")
_PLAIN = re.compile(r"[0-9a-fA-F]+")
_RANDOM = re.compile(r"\d|(?:[a-z][A-Z].*?){3}|[A-Z]{12}")


class KnownFormats:
    """A `SecretFinder` by the rules of gitleaks, which are read when a text first holds such a word."""

    def __init__(self) -> None:
        self._file = rules_file()  # at once, so that a run tells of a damaged package before it begins

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """As `SecretFinder.find`; a place that two rules match is told twice."""
        for start, end in _suspicious(text):
            near = text[start:end].lower()
            rules = {rule: None for keyword, rules in self._rules.items() if keyword in near for rule in rules}
            for rule in rules:
                yield from rule.find(text, start, end)

    @cached_property
    def _rules(self) -> dict[str, list[Rule]]:
        """The rules by keyword. One without keywords has the empty one, which is near everywhere."""
        found = defaultdict(list)
        for rule in gitleaks_rules(self._file):
            for keyword in rule.keywords or ("",):
                found[keyword].append(rule)
        return found


def _suspicious(text: str) -> Iterator[tuple[int, int]]:
    """Words that could be credentials, with what stands before them; those that overlap are told as one stretch."""
    start = end = position = 0
    for word in text.split():
        if len(word) < SHORTEST:
            continue
        position = text.index(word, position) + len(word)
        if any(_RANDOM.search(row) and not _PLAIN.fullmatch(row) for row in _ROW.findall(word)):
            before = max(0, position - len(word) - BEFORE)
            if before > end:
                if end:
                    yield start, end
                start = before
            end = position
    if end:
        yield start, end
