"""The documents that a target may look into: an inventory of names, and reading by name only.

A name that is not in the inventory leads nowhere, so that no argument of a tool can leave the folders.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from attrs import field, frozen
from skillopt_kernel.errors import DataError, EnvironmentFailure

SUFFIXES = (".txt", ".md")
PREFERRED = "transformed"
"""Subfolder that holds the readable form of a corpus, where there is one."""

LARGEST = 64_000_000
"""Bytes of a document; larger ones are left out."""

_PROBE = 8192


@frozen
class Document:
    """A file of the corpus. `name`: relative, with `/`; path: without links; size in bytes, changed: its time in ns."""

    name: str
    path: Path
    size: int
    changed: int


@frozen
class Corpus:
    """Documents by name, and why files of the folders are not among them."""

    roots: tuple[Path, ...]
    documents: Mapping[str, Document]
    left_out: Mapping[str, tuple[str, ...]] = field(factory=dict)

    def only(self, base_names: Collection[str]) -> Corpus:
        """The documents whose file name is among `base_names`."""
        wanted = set(base_names)
        kept = {name: each for name, each in self.documents.items() if each.path.name in wanted or name in wanted}
        return Corpus(self.roots, kept)

    def find(self, name: str) -> Document | None:
        """The document of this name, or the only one with this file name."""
        exact = self.documents.get(name.strip().removeprefix("./"))
        if exact is not None:
            return exact
        same = [each for each in self.documents.values() if each.name.rpartition("/")[2] == name.strip()]
        return same[0] if len(same) == 1 else None

    def matching(self, pattern: str) -> list[str]:
        """The names that match a shell pattern, as a whole or by their file name; letter case does not matter."""
        wanted = pattern.strip().lower()
        return [
            name
            for name in self.documents
            if fnmatch.fnmatchcase(name.lower(), wanted) or fnmatch.fnmatchcase(name.lower().rpartition("/")[2], wanted)
        ]

    def digest(self) -> str:
        """16 hex digits over names and contents: the same wherever the folders lie. Reads all of them.

        Raises `DataError` for a document that can no longer be read.
        """
        made = hashlib.sha256()
        for each in self.documents.values():
            try:
                with each.path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise DataError(f"the document {each.path} cannot be read: {error.strerror}.") from error
            made.update(f"{each.name} {content}\n".encode("utf-8", "surrogateescape"))
        return made.hexdigest()[:16]


def open_corpus(roots: Sequence[Path], named: str = "env.data_dirs") -> Corpus:
    """The text documents below `roots`, which `named` names, in order of name; of two with the same name the first.

    Links are followed as long as they stay inside their root. Raises `DataError` for a folder that is missing, and
    where no document is found.
    """
    documents: dict[str, Document] = {}
    left_out: dict[str, list[str]] = {}
    places = [_readable(root, named) for root in roots]
    for place in places:
        for name in sorted(_files(place)):
            document, problem = _document(place, name)
            if document is None:
                left_out.setdefault(problem, []).append(name)
            else:
                documents.setdefault(name, document)
    if not documents:
        raise DataError(f"{named}: {_nothing(places, left_out)}")
    reasons = {reason: tuple(names) for reason, names in left_out.items()}
    return Corpus(tuple(places), dict(sorted(documents.items())), reasons)


def lines_of(document: Document) -> Iterator[str]:
    """The lines of a document without their ends.

    Raises `EnvironmentFailure` where it can no longer be read, or is not what was found when the run began.
    """
    try:
        # The path has no links: one that took the file's place since then is not followed.
        descriptor = os.open(document.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            _require_unchanged(document, os.fstat(descriptor))
            for line in file:
                yield line.rstrip("\r\n")
    except OSError as error:
        raise EnvironmentFailure(f"the document {document.path} cannot be read: {error.strerror}") from error


def unchanged_path(document: Document) -> Path:
    """The path of a document, as it was found. Raises `EnvironmentFailure` as `lines_of` does."""
    try:
        _require_unchanged(document, document.path.lstat())
    except OSError as error:
        raise EnvironmentFailure(f"the document {document.path} cannot be read: {error.strerror}") from error
    return document.path


def some_lines(document: Document, first: int, count: int) -> list[str]:
    """`count` lines from the `first`, which is counted from 1; fewer at the end."""
    return list(islice(lines_of(document), first - 1, first - 1 + count))


def _require_unchanged(document: Document, state: os.stat_result) -> None:
    if (state.st_size, state.st_mtime_ns) != (document.size, document.changed):
        raise EnvironmentFailure(
            f"the document {document.path} has changed since the run began; run the same command again, which looks "
            f"at the corpus anew"
        )


def _readable(root: Path, named: str) -> Path:
    if not root.is_dir():
        raise DataError(
            f"{named}: there is no folder {root} of documents. Name yours; the README of skillopt-env-officeqa tells "
            f"where the corpus comes from."
        )
    for place in (root / PREFERRED, root / "treasury_bulletins_parsed" / PREFERRED):
        if place.is_dir():
            return place.resolve()
    return root.resolve()


def _files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(folder).relative_to(root)
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield (inside / name).as_posix()


def _document(root: Path, name: str) -> tuple[Document | None, str]:
    """The document, or why there is none."""
    try:
        path = (root / name).resolve(strict=True)
        state = path.stat()
        if not path.is_relative_to(root):
            return None, "are links that lead out of their folder"
        if not stat.S_ISREG(state.st_mode):
            return None, "are no regular files"
        if state.st_size > LARGEST:
            return None, f"are larger than {LARGEST // 1_000_000} MB"
        with path.open("rb") as file:
            if b"\0" in file.read(_PROBE):
                return None, "are binary"
    except OSError:
        return None, "cannot be read"
    return Document(name, path, state.st_size, state.st_mtime_ns), ""


def _nothing(places: Sequence[Path], left_out: Mapping[str, Sequence[str]]) -> str:
    where = ", ".join(map(str, places))
    reasons = "".join(f" {len(names)} files {reason}." for reason, names in left_out.items())
    links = " Download the corpus to a folder of its own (`local_dir=`), not into a cache of links."
    linked = any("links" in reason for reason in left_out)
    return f"no document ({', '.join(SUFFIXES)}) was found in {where}.{reasons}{links if linked else ''}"
