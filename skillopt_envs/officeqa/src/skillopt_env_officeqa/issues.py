"""Which issue of the Treasury Bulletin an address or a file is of: year and month, in both spellings."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
_IN_ADDRESS = re.compile(rf"\b({'|'.join(MONTHS)})-((?:19|20)\d\d)\b", re.IGNORECASE)
_IN_NAME = re.compile(r"((?:19|20)\d\d)_(\d\d)(?!\d)")
_PAGE = ("page", "pagenum", "page_id")


def issue_of(text: str) -> tuple[int, int] | None:
    """(year, month) that an address (`.../july-1942-6547`) or a file name (`..._1942_07.txt`) tells, else `None`."""
    if found := _IN_NAME.search(text):
        year, month = int(found[1]), int(found[2])
        return (year, month) if 1 <= month <= 12 else None
    if found := _IN_ADDRESS.search(text):
        return int(found[2]), MONTHS.index(found[1].lower()) + 1
    return None


def month_in_words(name: str) -> str:
    """A file's month and year in words, which people search by ("july 1942"); "" for a name that tells none."""
    issue = issue_of(name)
    return f"{MONTHS[issue[1] - 1]} {issue[0]}" if issue else ""


def page_of(address: str) -> int | None:
    """The page that an address names in its query; `None` for none."""
    query = parse_qs(urlsplit(address).query)
    named = next((query[name][0] for name in _PAGE if query.get(name)), "")
    return int(named) if named.isascii() and named.isdigit() else None


def pages_by_file(files: list[str], addresses: list[str]) -> list[tuple[str, int]]:
    """Which pages of which files the addresses name, in order and without repetition.

    An address belongs to the file of its issue; without one to the file at the same place of the list, or to the only
    file there is.
    """
    by_issue = {issue: name for name in files if (issue := issue_of(name)) is not None}
    found: dict[tuple[str, int], None] = {}
    for place, address in enumerate(addresses):
        page, issue = page_of(address), issue_of(address)
        name = by_issue.get(issue) if issue else None
        if name is None and (len(files) == 1 or place < len(files)):
            name = files[0] if len(files) == 1 else files[place]
        if page is not None and name is not None:
            found[name, page] = None
    return list(found)
