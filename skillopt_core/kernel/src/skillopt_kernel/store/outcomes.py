"""The outcomes of a run: `outcomes.jsonl` is the truth, one line for each, kept by skill, task and sample.

What an attempt leaves (conversation, prompts, files) lies in `<folder>/predictions/<safe id>/` and is written
before the line: the line is the commit. A killed process loses nothing committed, for the operating system has
the line once `put` returns. `sync`, at each checkpoint, makes the lines survive a loss of power; the
conversations, evidence that no decision rests on, are left to the operating system.

In memory there are a digest and an offset for each outcome (about 0.3 kB with its folder and time); the rest is
read when asked for.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from skillopt_kernel.errors import RunDirectoryError, SkillOptError
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome
from skillopt_kernel.skill import skill_hash as hash_of_skill
from skillopt_kernel.store import predictions
from skillopt_kernel.store.fields import outcome_fields, outcome_from_fields
from skillopt_kernel.store.files import json_line, safe_name
from skillopt_kernel.store.journal import Journal, parse_line, read_lines
from skillopt_kernel.store.redaction import Redactor

JOURNAL = "outcomes.jsonl"
_log = logging.getLogger(__name__)


class OutcomeStore:
    """The one writer and reader of a run's outcomes, for many threads at once.

    Holds at most one scored outcome for each (skill hash, task, content of the task, sample): the first one
    that is put. A missing outcome is written for the record and never answers a question.
    """

    def __init__(self, run_folder: Path, redactor: Redactor | None = None) -> None:
        self._root = run_folder
        self._redactor = redactor or Redactor()
        self._lock = threading.Lock()
        self._offsets: dict[bytes, int] = {}
        self._unscored: dict[bytes, int] = {}
        self._seconds: dict[str, float] = {}
        self._folders: set[int] = set()
        self._journal = Journal(run_folder / JOURNAL)
        for offset, row in read_lines(self._journal.path):
            try:
                key = _digest(row["skill_hash"], row["id"], row["content_hash"], row["sample"])
                self._remember(key, row, offset)
            except (KeyError, TypeError, AttributeError):
                _log.warning("%s: the line at byte %d is no outcome and was passed over", self._journal.path, offset)
        self._reader = self._journal.path.open("rb")

    @property
    def count(self) -> int:
        """How many scored outcomes there are."""
        return len(self._offsets)

    def find(self, ask: Ask) -> Outcome | None:
        """The scored outcome without its trajectory, or `None` when it must be asked."""
        key = _key(ask)
        with self._lock:
            return self._scored(key)

    def expected_seconds(self, ask: Ask) -> float:
        """How long the latest attempt of this task took, with whichever skill; 0.0 when there is none."""
        return self._seconds.get(ask.task.id, 0.0)

    def put(self, ask: Ask, outcome: Outcome) -> Outcome:
        """Commit an outcome and return it as `find` would: redacted, without its trajectory.

        `outcome.folder`, relative to the run directory ("steps/step_0001/rollout"), is where its attempt is to
        be kept; the outcome returned names the attempt's own folder. Where a scored outcome is there already,
        that one is returned. Raises `RunDirectoryError` when it cannot be written, and `SkillOptError` when an
        environment put something into it that no file can hold.
        """
        task, skill_hash, sample, folder = ask.task, hash_of_skill(ask.skill), ask.sample, outcome.folder
        content_hash = task.content_hash()
        key = _digest(skill_hash, task.id, content_hash, sample)
        outcome = attrs.evolve(
            self._redacted(outcome), task_id=task.id, kind=task.kind, skill_hash=skill_hash, sample=sample
        )
        with self._lock:
            earlier = self._scored(key)
            if earlier is not None:
                return earlier
            place, written = self._place(key, outcome, folder)
        try:
            outcome = attrs.evolve(outcome, folder=place)
            row = outcome_row(outcome, content_hash)
            line, stored = _encoded(row, outcome)
            if outcome.attempt is not None and not written:
                predictions.write(self._root / place, outcome.attempt)
            with self._lock:
                earlier = self._scored(key)
                if earlier is None:
                    self._remember(key, row, self._journal.append(line))
                    return stored
        except Exception:
            self._release(place, written)
            raise
        self._release(place, written)
        return earlier

    def with_trajectory(self, outcome: Outcome) -> Outcome:
        """The outcome with the turns and files of its attempt, read from its folder.

        Where they were lost or damaged, the trajectory stays empty and a warning is logged; the score stands.
        """
        if outcome.attempt is None or not outcome.folder:
            return outcome
        attempt = predictions.read(self._root / outcome.folder, outcome.attempt)
        return attrs.evolve(outcome, attempt=attempt or outcome.attempt)

    def unscored_attempt(self, ask: Ask) -> Attempt | None:
        """The whole attempt that was kept because its scoring failed, so that only scoring is asked again."""
        key = _key(ask)
        with self._lock:
            kept = self._kept(key)
        return None if kept is None or kept.attempt is None else self._whole_attempt(kept)

    def sync(self) -> None:
        """Make what is committed survive a loss of power."""
        with self._lock:
            self._journal.sync()

    def close(self) -> None:
        with self._lock:
            self._journal.close()
            self._reader.close()

    def __enter__(self) -> OutcomeStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _redacted(self, outcome: Outcome) -> Outcome:
        if not self._redactor.active:
            return outcome
        redact, attempt, score, missing = self._redactor.redact, outcome.attempt, outcome.score, outcome.missing
        return attrs.evolve(
            outcome,
            attempt=attempt and predictions.redacted(attempt, self._redactor),
            score=score and attrs.evolve(score, feedback=redact(score.feedback)),
            missing=missing and Missing(missing.reason, redact(missing.message)),
        )

    def _whole_attempt(self, outcome: Outcome) -> Attempt | None:
        assert outcome.attempt is not None
        return predictions.read(self._root / outcome.folder, outcome.attempt)

    # With the lock held (or, in `__init__`, alone) -----------------------------------------------------------

    def _scored(self, key: bytes) -> Outcome | None:
        return self._outcome(self._offsets.get(key))

    def _kept(self, key: bytes) -> Outcome | None:
        return self._outcome(self._unscored.get(key))

    def _outcome(self, offset: int | None) -> Outcome | None:
        if offset is None:
            return None
        self._reader.seek(offset)
        row = parse_line(self._reader.readline())
        try:
            return outcome_from_fields(row or {})
        except ValueError as error:
            raise RunDirectoryError(
                f"{self._journal.path}: the line at byte {offset} was changed from outside ({error}). Restore the "
                f"file, or remove that line: its task is asked again."
            ) from error

    def _remember(self, key: bytes, row: dict[str, Any], offset: int) -> None:
        if "attempt" in row:
            self._seconds[row["id"]] = row["attempt"]["seconds"]
        if row["folder"]:
            self._folders.add(_folder_key(row["folder"]))
        if "hard" in row:
            self._offsets.setdefault(key, offset)
            self._unscored.pop(key, None)
        elif "attempt" in row:
            self._unscored[key] = offset

    def _place(self, key: bytes, outcome: Outcome, folder: str) -> tuple[str, bool]:
        """Where the attempt belongs, reserved, and whether exactly this attempt lies there already."""
        if outcome.attempt is None:
            return "", True
        kept = self._kept(key)
        if kept is not None and self._whole_attempt(kept) == outcome.attempt:
            return kept.folder, True
        # Another sample or skill may have its attempt of this task in the same folder; what is committed there
        # is never written over. Case is ignored, as some file systems do.
        place = name = f"{folder}/predictions/{safe_name(outcome.task_id)}"
        number = 1
        while _folder_key(place) in self._folders:
            number += 1
            place = f"{name}-{number}"
        self._folders.add(_folder_key(place))
        return place, False

    def _release(self, place: str, written: bool) -> None:
        """Give a reserved place back, and what was written there."""
        if written:
            return
        shutil.rmtree(self._root / place, ignore_errors=True)
        with self._lock:
            self._folders.discard(_folder_key(place))


def outcome_row(outcome: Outcome, content_hash: str) -> dict[str, Any]:
    """The line of `outcomes.jsonl`."""
    return {**outcome_fields(outcome), "content_hash": content_hash, "time": now()}


def now() -> str:
    """The time in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _folder_key(place: str) -> int:
    return hash(place.casefold())


def _key(ask: Ask) -> bytes:
    return _digest(hash_of_skill(ask.skill), ask.task.id, ask.task.content_hash(), ask.sample)


def _digest(skill_hash: str, task_id: str, content_hash: str, sample: int) -> bytes:
    text = f"{skill_hash}\0{content_hash}\0{sample}\0{task_id}"
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).digest()


def _encoded(row: dict[str, Any], outcome: Outcome) -> tuple[bytes, Outcome]:
    """The line, and the outcome as it will be read back, so that a live and a resumed run see the same."""
    try:
        line = json_line(row)
        return line, outcome_from_fields(parse_line(line) or {})
    except (TypeError, ValueError, RecursionError) as error:
        raise SkillOptError(
            f"the outcome of task {outcome.task_id!r} cannot be stored: {error}. The environment must give texts for "
            f"`output` and `feedback`, finite numbers for named scores, and JSON values for `state`."
        ) from error
