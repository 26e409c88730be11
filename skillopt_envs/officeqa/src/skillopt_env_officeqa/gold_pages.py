"""The text of named pages from the corpus's parsed files: `document.elements[]` with `content` and `bbox[].page_id`."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import EnvironmentFailure

LONGEST_PAGE, LONGEST_PAGES = 24_000, 80_000
"""Characters."""

_CUT = "\n[cut here]"


def parsed_file(roots: Sequence[Path], name: str) -> Path | None:
    """The parsed file of a document: `jsons/<stem>.json` in a root or beside it; `None` where there is none."""
    stem = Path(name).stem
    places = [place / "jsons" / f"{stem}.json" for root in roots for place in (root, root.parent)]
    return next((place for place in places if place.is_file()), None)


def pages_text(roots: Sequence[Path], pages: Iterable[tuple[str, int]]) -> str:
    """The text of (document, page) pairs, each under a heading; those without a parsed file or text are left out.

    Raises `EnvironmentFailure` for a parsed file that cannot be read.
    """
    told, size = list[str](), 0
    for name, page in pages:
        path = parsed_file(roots, name)
        text = "\n\n".join(_page(path, page)) if path else ""
        if not text:
            continue
        text = text if len(text) <= LONGEST_PAGE else text[:LONGEST_PAGE] + _CUT
        text = text if size + len(text) <= LONGEST_PAGES else text[: LONGEST_PAGES - size] + _CUT
        size += len(text)
        told.append(f"### {name}, page {page}\n\n{text}")
        if size >= LONGEST_PAGES:
            break
    return "\n\n".join(told)


def _page(path: Path, page: int) -> Iterator[str]:
    try:
        parsed = json.loads(path.read_text("utf-8"))
        elements = parsed["document"]["elements"]
        for element in elements:
            content = element.get("content")
            if isinstance(content, str) and content.strip() and page in _pages_of(element):
                yield _readable(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFailure(
            f"the parsed document {path} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _pages_of(element: dict[str, Any]) -> list[Any]:
    return [box.get("page_id") for box in element.get("bbox") or ()]


def _readable(content: str) -> str:
    if "<table" not in content.lower():
        return html.unescape(content).strip()
    parser = _Tables()
    parser.feed(content)
    parser.close()
    return "\n\n".join(_markdown(rows) for rows in parser.tables if rows) or html.unescape(content).strip()


def _markdown(rows: list[list[str]]) -> str:
    width = max(map(len, rows))
    filled = [[*row, *[""] * (width - len(row))] for row in rows]
    lines = [filled[0], ["---"] * width, *filled[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class _Tables(HTMLParser):
    """Collects the rows of each table; text outside tables is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self._end_cell()
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables:
            self._end_cell()
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None:
            if not self.tables[-1]:
                self.tables[-1].append([])
            self.tables[-1][-1].append(" ".join("".join(self._cell).split()).replace("|", "\\|"))
            self._cell = None
