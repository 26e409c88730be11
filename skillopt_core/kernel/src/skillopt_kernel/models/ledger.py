"""Every model call of a run, once, in `calls.sqlite`: what was asked and answered, and what it used.

A call is committed before its caller has the reply, so that a killed process loses no finished call; calls that end
at the same time are committed together. In WAL mode, so that others can read while the run writes. The run's process
is the only writer, over one connection under a lock: a connection for each thread, or a thread that writes for all,
were no faster.

A call is found by (role, scope, ordinal, digest). Rows are never replaced: a call that is made again has a row of
its own, and only the latest finished one answers.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.models.call_text import Asked, CallKey, read_reply, reply_document, with_texts
from skillopt_kernel.models.requests import AgentResult, ChatReply, whole_characters
from skillopt_kernel.records import Usage
from skillopt_kernel.store.files import json_line, parse_line, refused, write_new
from skillopt_kernel.store.together import Together

if TYPE_CHECKING:
    import sqlite3

Answer = ChatReply | AgentResult
CALLS = "calls.sqlite"
OK = "ok"
TOLD = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usd")
"""What a provider tells of a call, or does not."""

_VERSION = 1
_SCHEMA = f"""
BEGIN;
CREATE TABLE contents(hash TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE calls(
    number INTEGER PRIMARY KEY, role TEXT NOT NULL, scope TEXT NOT NULL, ordinal INTEGER NOT NULL, digest TEXT NOT NULL,
    stage TEXT NOT NULL, epoch INTEGER, step INTEGER, backend TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
    error TEXT, prompt_tokens INTEGER, completion_tokens INTEGER, cached_tokens INTEGER, reasoning_tokens INTEGER,
    usd REAL, seconds REAL NOT NULL, tries INTEGER NOT NULL, started TEXT NOT NULL, process INTEGER NOT NULL,
    request BLOB NOT NULL, reply BLOB, served INTEGER NOT NULL DEFAULT 0, servable INTEGER NOT NULL DEFAULT 1,
    replayed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE reserved(
    number INTEGER PRIMARY KEY, role TEXT NOT NULL, calls INTEGER NOT NULL DEFAULT 1, tokens INTEGER NOT NULL,
    usd REAL NOT NULL
);
CREATE INDEX calls_by_key ON calls(scope, ordinal);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_SUMS = f"""
count(*) AS calls, {", ".join(f"sum({name}) AS {name}" for name in TOLD if name != "usd")},
sum(status = '{OK}' AND prompt_tokens IS NULL AND completion_tokens IS NULL) AS unknown_calls,
sum(status = '{OK}' AND usd IS NULL) AS unpriced_calls, sum(served) AS served_calls, sum(replayed) AS replayed_calls,
sum(seconds) AS seconds, sum(tries) AS tries, round(sum(usd), 12) AS usd, sum(status != '{OK}') AS failed_calls
"""


@frozen(kw_only=True)
class CallRecord:
    """What is known of one call that has ended.

    status   "ok", or the kind of failure (the error's class); error: its sentence, redacted
    usage    what it used, `None` when nobody told; usd with its price where that is known
    seconds  wall time, waits and tries included; started: UTC, ISO 8601
    reserved its reservations by number, and whether each may have been used, so that it goes on to count
    replayed the reply is from the ledger of another run, and so is what it used: here it cost nothing
    """

    role: str
    stage: str
    backend: str
    model: str
    status: str
    error: str | None
    usage: Usage | None
    seconds: float
    tries: int
    started: str
    replayed: bool = False
    reserved: Mapping[int, bool] = attrs.field(factory=dict)


class Ledger:
    """The calls of one run. Safe to use from many threads.

    path  the database, made if it is missing; `None`: in memory. read_only: for a look at a run, also a live one
    """

    def __init__(self, path: Path | None = None, *, read_only: bool = False) -> None:
        self.path = path or Path(":memory:")
        self._lock = threading.Lock()
        with self._telling():
            self._database = _connect(path, read_only)
            self._check_schema(read_only)
            last = self._rows("SELECT coalesce(max(process), 0) AS process, max(number) AS number FROM calls")[0]
            self._process, self._numbers = 1 + last["process"], count(1 + (last["number"] or 0))
            # By their hashes: most lookups are for a scope without any call, and need not ask the database.
            self._scopes = {hash(row["scope"]) for row in self._rows("SELECT DISTINCT scope FROM calls")}
        self._contents: set[str] = set()
        self._together = Together(self._commit)

    def find(self, role: str, key: CallKey, asked: Asked) -> Answer | None:
        """The reply of this very call if it was finished before, which then counts as served; else `None`."""
        if not key.scope or hash(key.scope) not in self._scopes:
            return None
        with self._lock, self._telling():
            found = self._rows(
                "SELECT number, reply FROM calls WHERE scope = ? AND ordinal = ? AND role = ? AND digest = ? "
                f"AND status = '{OK}' AND servable ORDER BY number DESC LIMIT 1",
                (key.scope, key.ordinal, role, asked.digest),
            )
            if not found:
                return None
            reply = read_reply(zlib.decompress(found[0]["reply"]), self._content)
            self._database.execute("UPDATE calls SET served = served + 1 WHERE number = ?", (found[0]["number"],))
            return reply

    def record(self, call: CallRecord, key: CallKey, asked: Asked, reply: Answer | None) -> int:
        """Commit one call and return its number, from 1. What the credentials were must be replaced already."""
        row = attrs.asdict(key) | attrs.asdict(call, recurse=False)
        usage, reserved = row.pop("usage") or Usage(), row.pop("reserved")
        row |= {name: getattr(usage, name) for name in TOLD}
        row["error"] = None if call.error is None else whole_characters(call.error)
        document, files = (b"", {}) if reply is None else reply_document(reply)
        row["reply"] = _compressed(document) if document else None
        row |= {"digest": asked.digest, "request": _compressed(json_line(asked.document)), "process": self._process}
        self._together.put((row, asked.contents | files))
        self.settle(reserved)
        return int(row["number"])

    def settle(self, reserved: Mapping[int, bool]) -> None:
        """End reservations, by number; true: the request may have been used, so that it goes on to count."""
        with self._lock, self._telling():
            for number, used in reserved.items():
                change = "UPDATE reserved SET calls = 0" if used else "DELETE FROM reserved"
                self._database.execute(f"{change} WHERE number = ?", (number,))

    def reserve(self, role: str, tokens: float, usd: float) -> int:
        """Note a request that is about to be sent, at its most; its number. A process that is killed leaves it so."""
        with self._lock, self._telling():
            values = (role, tokens, usd)
            made = self._database.execute("INSERT INTO reserved(role, tokens, usd) VALUES (?, ?, ?)", values)
            return made.lastrowid or 0

    def reserved(self) -> list[dict[str, Any]]:
        """By role, what was reserved and not settled: requests of which nobody knows what they used.

        Their `calls` are those that no recorded call counts among its tries.
        """
        with self._lock, self._telling():
            sums = "sum(calls) AS calls, sum(tokens) AS tokens, sum(usd) AS usd"
            return self._rows(f"SELECT role, {sums} FROM reserved GROUP BY role")

    def wall_seconds(self) -> float:
        """Seconds from the first call to the last of each process, added up."""
        ends = "julianday(started) * 86400"
        spans = f"SELECT max({ends} + seconds) - min({ends}) AS span FROM calls GROUP BY process"
        with self._lock, self._telling():
            return float(self._rows(f"SELECT coalesce(sum(span), 0.0) AS seconds FROM ({spans})")[0]["seconds"])

    def retire(self, role: str, scope: str) -> None:
        """Serve no reply of a scope any more: they came to nothing, and are asked anew.

        Unless its last call failed: then that was why, and what was answered before it stands.
        """
        with self._lock, self._telling():
            where = "scope = ? AND role = ?"
            last = f"SELECT status FROM calls WHERE {where} ORDER BY number DESC LIMIT 1"
            changed = f"UPDATE calls SET servable = 0 WHERE {where} AND ({last}) = '{OK}'"
            self._database.execute(changed, (scope, role, scope, role))

    def sums(self, *by: str, **where: int | None) -> list[dict[str, Any]]:
        """Calls and what they used, over all processes of the run: a row for each value of the columns `by`.

        where: a column's value, `None` for none (`step=3`). A sum is `None` while no call told any. `unknown_calls`
        did not tell their tokens, `unpriced_calls` have no known price; a failed call used what nobody knows, and
        counts as failed, as neither of these.
        """
        condition = " AND ".join(f"{name} IS ?" for name in where) or "1"
        grouped = f" GROUP BY {', '.join(by)} ORDER BY {', '.join(by)}" if by else ""
        with self._lock, self._telling():
            query = f"SELECT {', '.join([*by, _SUMS])} FROM calls WHERE {condition}{grouped}"
            return [row for row in self._rows(query, tuple(where.values())) if row["calls"]]

    def calls(self) -> list[dict[str, Any]]:
        """Every call in the order in which they ended, without what was asked and answered."""
        columns = [field.name for field in attrs.fields(CallRecord) if field.name not in ("usage", "error", "reserved")]
        listed = ", ".join(["number", *columns, *TOLD, "scope", "ordinal", "epoch", "step", "process", "served"])
        with self._lock, self._telling():
            return self._rows(f"SELECT {listed} FROM calls ORDER BY number")

    def call(self, number: int) -> dict[str, Any] | None:
        """All of one call, its request and reply as JSON values; `None` when there is no call of this number."""
        with self._lock, self._telling():
            found = self._rows("SELECT * FROM calls WHERE number = ?", (number,))
            if not found:
                return None
            row = found[0]
            document = parse_line(zlib.decompress(row["request"]))
            reply = row["reply"] and parse_line(zlib.decompress(row["reply"]))
            return row | {"request": with_texts(document, lambda name: self._content(name).decode()), "reply": reply}

    def sync(self) -> None:
        """Make what is committed survive a loss of power."""
        with self._lock, self._telling():
            self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _commit(self, calls: list[tuple[dict[str, Any], Mapping[str, bytes]]]) -> None:
        """Commit rows with the contents that they name: the contents first, which do no harm without their rows."""
        named = {name: data for _, contents in calls for name, data in contents.items() if name not in self._contents}
        kept = [{"hash": name, "data": _compressed(data)} for name, data in named.items()]
        with self._lock, self._telling():
            for row, _ in calls:
                row["number"] = next(self._numbers)
            self._insert("OR IGNORE INTO contents", kept)
            self._insert("INTO calls", [row for row, _ in calls])
        self._contents |= set(named)
        self._scopes |= {hash(row["scope"]) for row, _ in calls}

    # With the lock held (or, in `__init__`, alone) -----------------------------------------------------------

    def _rows(self, query: str, values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        cursor = self._database.execute(query, tuple(values))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _insert(self, into: str, rows: list[dict[str, Any]]) -> None:
        """Rows with the same columns, as many in one statement as SQLite takes: each costs a turn of all threads."""
        import sqlite3

        most = self._database.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        while rows:
            now, rows = rows[: most // len(rows[0])], rows[most // len(rows[0]) :]
            places = ", ".join([f"({', '.join('?' * len(now[0]))})"] * len(now))
            values = [value for row in now for value in row.values()]
            self._database.execute(f"INSERT {into} ({', '.join(now[0])}) VALUES {places}", values)

    def _content(self, name: str) -> bytes:
        found = self._rows("SELECT data FROM contents WHERE hash = ?", (name,))
        if not found:
            raise ValueError(f"the content {name} is not there")
        return zlib.decompress(found[0]["data"])

    def _check_schema(self, read_only: bool) -> None:
        version = self._rows("PRAGMA user_version")[0]["user_version"]
        if version > _VERSION:
            raise RunDirectoryError(
                f"{self.path} was written by a newer version of SkillOpt (its format is {version}, this one knows "
                f"{_VERSION}); upgrade with: pip install --upgrade skillopt-kernel."
            )
        if version == 0 and read_only:
            raise RunDirectoryError(f"{self.path} holds no calls yet; look again once the run has made one.")
        if version == 0:
            self._database.executescript(_SCHEMA)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn what the database raises into a `RunDirectoryError` that says what to do."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise RunDirectoryError(_sentence(self.path, error)) from error


def _compressed(data: bytes) -> bytes:
    # A third of the time of the usual level, for a tenth more of text. With tables of the usual size it would take ten
    # times as long to lay them out as to compress one of these texts.
    packer = zlib.compressobj(1, zlib.DEFLATED, 13, 6)
    return packer.compress(data) + packer.flush()


def _connect(path: Path | None, read_only: bool) -> sqlite3.Connection:
    import sqlite3

    address = ":memory:" if path is None else path.resolve().as_uri()
    if path is not None and read_only:
        # Without a log beside it nobody writes, and the file is read as it lies, in a read-only folder, too.
        address += "?mode=ro" if path.with_name(f"{path.name}-wal").exists() else "?immutable=1"
    elif path is not None and not path.exists():
        write_new(path, b"")  # private to its owner, as what SQLite puts beside it will be
    database = sqlite3.connect(address, timeout=30.0, isolation_level=None, check_same_thread=False, uri=True)
    if path is None or read_only:
        return database
    # On a file system without shared memory SQLite stays with its older journal: slower, and as safe.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    return database


def _sentence(path: Path, error: Exception) -> str:
    import sqlite3

    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return (
            f"{path} is damaged ({error}). Restore the file, or move it away: the run goes on without it, asks again "
            f"what was answered in the open step, and its totals begin anew."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"{path} is locked by another program ({error}). Close that program and run the same command again."
    long = " (its path is too long for SQLite)" if len(str(path.resolve())) > 500 else ""
    return str(refused(path, f"{error}{long}"))
