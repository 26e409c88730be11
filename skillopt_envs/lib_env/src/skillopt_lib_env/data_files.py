"""Data files read strictly: JSON, JSON lines and CSV, with the place of every item."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import DataError

LINES, TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")

SUFFIXES = (".json", *LINES, *TABLES)
"""Endings of data files that `read_items` reads, in the order in which a folder's are looked for."""

OTHER_FORMS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a spreadsheet; save it as CSV (UTF-8)"),
    **dict.fromkeys((".parquet", ".arrow", ".feather"), "in columns, which only data sets are read from"),
    **dict.fromkeys((".zip", ".gz", ".bz2", ".xz", ".zst", ".7z"), "compressed; unpack it"),
}
"""Endings of files that people have their data in and that `read_items` does not read -> what they are, what to do."""

DELIMITERS = (",", ";", "\t")
"""Between the columns of CSV: Excel writes semicolons where the comma stands in numbers."""


@frozen
class Item:
    """One raw item: its fields, and where it stands ("items.jsonl, line 3") for errors about it."""

    fields: Mapping[str, Any]
    where: str

    def problem(self, sentence: str) -> DataError:
        """An error about this item."""
        return DataError(f"{self.where}: {sentence}")

    def text(self, name: str, default: str | None = None) -> str:
        """The text of field `name`; a number is taken as its text. Raises `DataError` without `default`."""
        value = self.fields.get(name)
        if value is None:
            if default is not None:
                return default
            known = ", ".join(map(repr, self.fields)) or "none"
            raise self.problem(f"the field {name!r} is missing; the fields given are {known}.")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise self.problem(f"the field {name!r} must be text, not {_kind(value)}.")
        return value

    def required_text(self, name: str) -> str:
        """As `text`, and not blank."""
        value = self.text(name)
        if not value.strip():
            raise self.problem(f"the field {name!r} is blank.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that holds a list of texts, or one text; blank ones are left out."""
        value = self.fields.get(name)
        if not isinstance(value, (list, tuple)):
            return tuple(text for text in (self.text(name),) if text.strip())
        for entry in value:
            if isinstance(entry, bool) or not isinstance(entry, (str, int, float)):
                raise self.problem(f"the list {name!r} must hold texts, not {_kind(entry)}.")
        return tuple(text for text in map(str, value) if text.strip())


def read_items(path: Path) -> list[Item]:
    """The items of one file, in order. Every error names the file and the line or byte.

    `.jsonl` and `.ndjson`: one object a line. `.csv` and `.tsv`: a header, then one item a row, every value text. Else
    JSON: a list of objects, an object whose `data` is such a list, an object of objects (their keys become `id` where
    they have none), or one object, which is one item; a file of several lines that are each an object is read
    as JSON lines. UTF-8, a byte-order mark is allowed.

    CSV is divided by the one of `DELIMITERS` that gives its header the most columns, TSV by tabs. Blank rows are passed
    over, and columns without a name in which nothing stands: spreadsheets write both.
    """
    if path.suffix.lower() in OTHER_FORMS:
        raise DataError(
            f"{path}: the file is {OTHER_FORMS[path.suffix.lower()]}. Data is read from {', '.join(SUFFIXES)}."
        )
    text = _read_text(path)
    if not text.strip():
        raise DataError(f"{path}: the file is empty; it should hold items.")
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _csv_items(text, path)
    if suffix in LINES and text.lstrip().startswith("["):
        raise DataError(f"{path}: the file ends in {suffix}, but holds a list: it is JSON; rename it to end in .json.")
    if suffix in LINES or _looks_like_lines(text):
        return _line_items(text, path)
    if suffix not in SUFFIXES and not text.lstrip().startswith(("[", "{")):
        raise DataError(
            f"{path}: the name does not say what the file is, and it does not look like JSON. Rename it to end as "
            f"what it is: {', '.join(SUFFIXES)}."
        )
    return _json_items(text, path)


def data_file_in(folder: Path, *, single: bool = False) -> Path:
    """The data file of `folder`: `items.json` if there, else the first by kind (`SUFFIXES`) and name.

    `single` refuses a folder that holds several. Raises `DataError` when there is none.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"{folder} is neither a file nor a folder; data is read more than once, which a pipe does not allow: save "
            f"it as a file."
        )
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder.")
    found = sorted(
        (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file()),
        key=lambda path: (path.name != "items.json", SUFFIXES.index(path.suffix.lower()), path.name),
    )
    if not found:
        raise DataError(f"{folder}: the folder holds no data file ({', '.join(SUFFIXES)}).")
    if single and len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"{folder}: the folder holds several data files ({names}); name the one to use.")
    return found[0]


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the file in it that holds the data.")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte-order mark.
        at = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        looks = ", and the file looks like UTF-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        line = raw.count(b"\n", 0, at) + 1
        raise DataError(
            f"{path}:{line}: byte {at} is not UTF-8 (0x{raw[at]:02x}){looks}; save the file as UTF-8."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{path}:{line}: there is a NUL character, which no text holds: the file is damaged, or saved as UTF-16. "
            f"Save it as UTF-8."
        )
    return text


def _looks_like_lines(text: str) -> bool:
    """Whether `text` is several lines whose first is a whole JSON object."""
    lines = text.strip().split("\n", 1)
    if len(lines) < 2 or not lines[0].startswith("{"):
        return False
    try:
        return isinstance(json.loads(lines[0]), dict)
    except ValueError:
        return False


def _parsed(text: str, path: Path, first_line: int) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise DataError(f"{path}:{line}:{error.colno}: the file is not valid JSON: {error.msg}.") from error
    except RecursionError as error:
        raise DataError(f"{path}:{first_line}: the JSON is nested too deeply to be read.") from error
    if "\\u" in text:
        _refuse_half_characters(value, path, first_line)
    return value


def _refuse_half_characters(value: Any, path: Path, line: int) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}:{line}: the text holds half a character (the escape \\u{ord(error.object[error.start]):04x} "
            f"without its other half); correct that escape."
        ) from error


def _json_items(text: str, path: Path) -> list[Item]:
    value = _parsed(text, path, 1)
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    elif isinstance(value, dict) and value and all(isinstance(entry, dict) for entry in value.values()):
        value = [{"id": key} | entry for key, entry in value.items()]
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise DataError(f"{path}: the file holds {_kind(value)}; it should hold a list of items.")
    items = []
    for number, entry in enumerate(value, start=1):
        where = f"{path}, item {number}"
        if not isinstance(entry, dict):
            raise DataError(f"{where}: an item must be an object, not {_kind(entry)}.")
        items.append(Item(entry, where))
    return items


def _line_items(text: str, path: Path) -> list[Item]:
    items = []
    # Only a newline ends a line of JSON lines: a text may hold other separators, U+2028 for one.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        value = _parsed(line, path, number)
        if not isinstance(value, dict):
            raise DataError(f"{path}:{number}: each line must hold an object, not {_kind(value)}.")
        items.append(Item(value, f"{path}:{number}"))
    return items


def _csv_items(text: str, path: Path) -> list[Item]:
    first, _, rest = text.partition("\n")
    named = re.fullmatch(r"\s*\"?sep=(.)\"?\s*", first)  # what Excel writes into a first line for itself
    before = 1 if named else 0
    if named:
        text = rest
    allowed = ("\t",) if path.suffix.lower() == ".tsv" else DELIMITERS
    delimiter = named[1] if named else max(allowed, key=lambda each: len(_header(text, each)))
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    items: list[Item] = []
    begins = 1 + before
    try:
        header = [name.strip() for name in next(rows, [])]
        names = [name for name in header if name]
        if not names or len(set(names)) < len(names):
            raise DataError(f"{path}:{begins}: every column needs a name of its own; the header is {_named(header)}.")
        begins = rows.line_num + 1 + before
        for row in rows:
            if any(cell.strip() for cell in row):
                items.append(_csv_item(header, row, f"{path}:{begins}"))
            begins = rows.line_num + 1 + before
    except csv.Error as error:
        raise DataError(f"{path}:{begins}: the row is not valid CSV: {_why(error)}.") from error
    return items


def _csv_item(header: list[str], row: list[str], where: str) -> Item:
    if len(row) != len(header):
        quoted = " A text with the delimiter in it needs quotation marks around it." if len(row) > len(header) else ""
        raise DataError(f"{where}: the row has {len(row)} values, the header names {len(header)} columns.{quoted}")
    nameless = [number for number, name in enumerate(header, start=1) if not name and row[number - 1].strip()]
    if nameless:
        raise DataError(
            f"{where}: column {nameless[0]} has a value and no name in the header; every column needs a name."
        )
    return Item({name: cell for name, cell in zip(header, row, strict=True) if name}, where)


def _header(text: str, delimiter: str) -> list[str]:
    """The names in the first row, as this delimiter divides it; none when it cannot be read so."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter), [])
    except csv.Error:
        return []


def _named(header: list[str]) -> str:
    return repr(", ".join(header)) if header else "blank"


def _why(error: csv.Error) -> str:
    if "field larger" in str(error):
        return (
            f"a cell has more than {csv.field_size_limit():,} characters, which mostly means that a quotation mark is "
            f"not closed; texts that are really so long belong into JSON lines"
        )
    return f"{error}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")
