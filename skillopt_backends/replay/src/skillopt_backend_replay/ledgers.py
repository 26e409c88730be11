"""Two ledgers: the recorded run's, which is only read, and the replay's, which takes its answers from there.

A call is found as on a resume, by role, scope, ordinal and digest. Where the run made it several times, since it failed
or its answer came to nothing, an attempt gets them in that order, faults included: the same faults lead to the same
missing outcomes. The optimizer gets the last: it makes a call again only when a killed step is taken again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt_kernel import errors
from skillopt_kernel.models.call_text import Asked, CallKey, read_reply
from skillopt_kernel.models.ledger import OK, TOLD, CallRecord, Ledger
from skillopt_kernel.models.requests import AgentResult, ChatReply
from skillopt_kernel.records import Usage
from skillopt_kernel.store.files import now

from skillopt_backend_replay.sentences import Question, asked_otherwise, made_no_more, never_made

Row = Mapping[str, Any]

FAULTS = {
    kind.__name__: kind
    for kind in (
        errors.PassingError, errors.CallTimeout, errors.RejectedRequest, errors.ContextTooLong, errors.RefusedError,
    )
}  # fmt: skip
"""Status of a failed call -> what is raised for it again. Of others (an interruption, a missing key) nothing came."""


class ReplayError(errors.SkillOptError):
    """A replay made a call that the recorded run did not make."""


class RecordedCalls(Ledger):
    """The calls of the recorded run, read only. Safe to use from many threads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, read_only=True)
        self.folder = path.parent

    def made(self, role: str, key: CallKey, digest: str = "") -> list[Row]:
        """The calls with this key, in the order in which they ended; with a `digest` those that asked the same."""
        query = "SELECT * FROM calls WHERE scope = ? AND ordinal = ? AND role = ? AND ? IN ('', digest) ORDER BY number"
        return self._selected(query, key.scope, key.ordinal, role, digest)

    def reply(self, row: Row) -> ChatReply | AgentResult | None:
        """What was answered; `None` for a call that failed."""
        with self._lock, self._telling():
            return None if row["reply"] is None else read_reply(zlib.decompress(row["reply"]), self._content)

    def nearest(self, role: str, key: CallKey) -> Row | None:
        """A call that the run made in the place of one that it never made: of the same task, or the same site."""
        if role == "optimizer":
            site = key.scope.rpartition("/")[0] + "/"
            order = "scope = ? DESC, abs(ordinal - ?), number"
            query = f"SELECT * FROM calls WHERE role = ? AND substr(scope, 1, ?) = ? ORDER BY {order} LIMIT 1"
            found = self._selected(query, role, len(site), site, key.scope, key.ordinal)
        else:
            skill, _, rest = key.scope.partition("/")
            task = rest[rest.index("/") :] if "/" in rest else key.scope  # with the sample: "/0/train-3"
            order = "substr(scope, 1, ?) = ? DESC, step IS ? DESC, epoch IS ? DESC, abs(ordinal - ?), number"
            query = f"SELECT * FROM calls WHERE role = ? AND substr(scope, -?) = ? ORDER BY {order} LIMIT 1"
            same_moment = (len(skill), skill, key.step, key.epoch, key.ordinal)
            found = self._selected(query, role, len(task), task, *same_moment)
        return found[0] if found else None

    def model(self, role: str) -> str:
        """The model of the role's calls; "" when it made none."""
        found = self._selected("SELECT model FROM calls WHERE role = ? LIMIT 1", role)
        return found[0]["model"] if found else ""

    def kinds(self, role: str) -> frozenset[str]:
        """Whether the role was a chat model or an agent; both for a role that made no call."""
        found = self._selected("SELECT request FROM calls WHERE role = ? LIMIT 1", role)
        if not found:
            return frozenset({"chat", "agent"})
        request = json.loads(zlib.decompress(found[0]["request"]))
        return frozenset({"chat" if "messages" in request else "agent"})

    def _selected(self, query: str, *values: Any) -> list[Row]:
        with self._lock, self._telling():
            return [*self._rows(query, values)]


class ReplayLedger(Ledger):
    """The ledger of a replay: what it does not hold yet it copies from the recorded run, marked as replayed.

    named  role -> the backend and the model (`None`: the backend's own) that the configuration names
    """

    def __init__(
        self, path: Path, recorded: RecordedCalls, named: Mapping[str, tuple[str, str | None]] | None = None
    ) -> None:
        super().__init__(path)
        self._recorded, self._named = recorded, named or {}

    def find(self, role: str, key: CallKey, asked: Asked) -> ChatReply | AgentResult:
        """The reply of this very call in the recorded run, or its fault raised again.

        Raises `ReplayError` for a call that the run did not make, or not with this request, and shows the difference.
        """
        served = super().find(role, key, asked)
        if served is not None:
            return served
        row = self._next(role, key, asked.digest)
        if row is None:
            backend, model = self._named.get(role, ("", None))
            raise ReplayError(self._explained(Question(role, key, asked, backend, model or "")))
        reply = self._recorded.reply(row)
        usage = Usage(calls=1, **{name: row[name] for name in TOLD})
        known = {name: row[name] for name in ("role", "stage", "backend", "model", "status", "error")}
        call = CallRecord(**known, usage=usage, seconds=0.0, tries=0, started=now(), replayed=True)
        self.record(call, key, asked, reply)
        if reply is None:
            fault = FAULTS[row["status"]](row["error"] or "")
            fault.usage = usage
            raise fault
        return reply

    def _explained(self, question: Question) -> str:
        recorded, folder, key = self._recorded, self.path.parent, question.key
        made = recorded.made(question.role, key)
        same = [row for row in made if row["digest"] == question.asked.digest]
        if same:
            return made_no_more(recorded.folder, question, same)
        row = made[-1] if made else recorded.nearest(question.role, key)
        whole = row and recorded.call(row["number"])
        if not whole:
            return never_made(recorded.folder, question, folder)
        return asked_otherwise(recorded.folder, question, folder, whole, same_call=bool(made))

    def _next(self, role: str, key: CallKey, digest: str) -> Row | None:
        """The call of the run that answers now; `None` when there is none, or no further one."""
        made = [row for row in self._recorded.made(role, key, digest) if row["status"] in (OK, *FAULTS)]
        if role == "optimizer":
            return made[-1] if made else None
        with self._lock, self._telling():
            query = "SELECT count(*) AS count FROM calls WHERE scope = ? AND ordinal = ? AND role = ? AND digest = ?"
            taken = self._rows(query, (key.scope, key.ordinal, role, digest))[0]["count"]
        return made[taken] if taken < len(made) else None
