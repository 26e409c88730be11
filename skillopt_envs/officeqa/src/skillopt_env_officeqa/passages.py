"""Ranked search in the corpus: passages in a full-text index of SQLite (FTS5), ranked by its BM25.

The index is a file, so that a corpus of hundreds of megabytes needs no memory; it comes with Python, and the same
query gives the same ranks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from attrs import frozen
from skillopt_kernel.errors import ConfigError, DataError

from skillopt_env_officeqa.corpus import Corpus, Document, lines_of
from skillopt_env_officeqa.issues import month_in_words

FORMAT = 1
LINES, CHARACTERS = 40, 3000
"""Limits of a passage; a longer line is a passage of its own."""

LONGEST_SEARCH = 60.0
"""Seconds: words that stand nearly everywhere make a search of a large corpus slow."""

_STEPS_BETWEEN_LOOKS = 1000
"""At the clock; in steps of SQLite's virtual machine."""

_TABLES = """
create virtual table passages using fts5(name, text, content='', tokenize="porter unicode61 remove_diacritics 2");
create table places(id integer primary key, document text not null, first integer not null, last integer not null);
"""
_SEARCH = """
select places.document, places.first, places.last from passages join places on places.id = passages.rowid
where passages match ? and (? is null or places.document in (select value from json_each(?)))
order by bm25(passages, 2.0, 1.0), passages.rowid limit ?
"""


@frozen
class Passage:
    """Lines `first` to `last` (from 1) of a document."""

    document: str
    first: int
    last: int


class SearchTimeout(Exception):
    """A search was given up after `LONGEST_SEARCH`."""


class PassageIndex:
    """The index of one corpus, made at its first use; serves several threads at once.

    folder: where it is kept for later runs, `None` for a temporary folder that ends with this object
    """

    def __init__(self, corpus: Corpus, folder: Path | None = None) -> None:
        self._corpus = corpus
        self._folder = folder
        self._lock = threading.Lock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._path: Path | None = None

    @property
    def is_made(self) -> bool:
        """Whether the index is there already, from an earlier run or use."""
        return self._path is not None or (self._folder is not None and self._file(self._folder).is_file())

    def make(self) -> Path:
        """The index's file, made if it is not there. Raises `DataError` where it cannot be written."""
        with self._lock:
            if self._path is None:
                self._path = self._made()
            return self._path

    def search(self, query: str, limit: int, among: Collection[str] | None = None) -> list[Passage]:
        """At most `limit` passages that hold words of `query`, the best first. `among`: names of documents.

        Raises `SearchTimeout` after `LONGEST_SEARCH`.
        """
        match = _match(query)
        if not match or (among is not None and not among):
            return []
        names = None if among is None else json.dumps(sorted(among))
        with _reading(self.make()) as database:
            ends = time.monotonic() + LONGEST_SEARCH
            database.set_progress_handler(lambda: time.monotonic() > ends, _STEPS_BETWEEN_LOOKS)
            try:
                return [Passage(*row) for row in database.execute(_SEARCH, (match, names, names, limit))]
            except sqlite3.OperationalError as error:
                if time.monotonic() > ends:
                    raise SearchTimeout from error
                raise

    def _made(self) -> Path:
        folder = self._folder
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="skillopt-officeqa-", ignore_cleanup_errors=True)
            folder = Path(self._temporary.name)
        path = self._file(folder)
        if path.is_file():
            return path
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            _write(part, self._corpus)
            part.replace(path)
        except (OSError, sqlite3.Error) as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise DataError(
                f"the search index cannot be written to {folder}: {error}. Free the space, or name another folder: "
                f"`-o env.index_dir=FOLDER`."
            ) from error
        return path

    def _file(self, folder: Path) -> Path:
        return folder / f"passages_{_state(self._corpus)}.sqlite"


def passages_of(document: Document) -> Iterator[tuple[Passage, str]]:
    """The passages of a document with their text, in order; blank lines are in none of their own."""
    first, held = 1, list[str]()
    number = 0
    for number, line in enumerate(lines_of(document), start=1):
        if held and (len(held) >= LINES or sum(map(len, held)) + len(line) > CHARACTERS):
            yield Passage(document.name, first, number - 1), "\n".join(held)
            held = []
        if not held:
            first = number
        if held or line.strip():
            held.append(line)
    if held:
        yield Passage(document.name, first, number), "\n".join(held)


def words_of(query: str) -> list[str]:
    """The words of a query, numbers with their commas and points, in lower case and once each."""
    return list(dict.fromkeys(re.findall(r"\w+(?:[.,'-]\w+)*", query.lower())))


def _match(query: str) -> str:
    # Each word is a phrase in quotation marks, so that nothing in a query is taken for an operator.
    return " OR ".join(f'"{word}"' for word in words_of(query)[:64])


def _state(corpus: Corpus) -> str:
    told = "\n".join(f"{each.path} {each.size} {each.changed}" for each in corpus.documents.values())
    return hashlib.sha256(f"{FORMAT}\n{told}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _write(path: Path, corpus: Corpus) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = off")
        database.execute("pragma synchronous = off")
        try:
            database.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            if "fts5" in str(error):
                raise ConfigError(
                    "this Python's SQLite has no full-text search (FTS5); use a Python that has."
                ) from error
            raise
        with database:
            for number, (name, passage, text) in enumerate(_named_passages(corpus), start=1):
                place = (number, passage.document, passage.first, passage.last)
                database.execute("insert into passages(rowid, name, text) values (?, ?, ?)", (number, name, text))
                database.execute("insert into places values (?, ?, ?, ?)", place)


def _named_passages(corpus: Corpus) -> Iterator[tuple[str, Passage, str]]:
    for document in corpus.documents.values():
        name = f"{document.name} {month_in_words(document.name)}"
        for passage, text in passages_of(document):
            yield name, passage, text


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        yield database
