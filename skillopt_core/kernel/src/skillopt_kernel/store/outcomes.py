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
import os
import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from skillopt_kernel.errors import RunDirectoryError, SkillOptError
from skillopt_kernel.records import Ask, Attempt, Outcome, Trajectory
from skillopt_kernel.skill import skill_hash as hash_of_skill
from skillopt_kernel.splits import attempt_number
from skillopt_kernel.store import fields, files
from skillopt_kernel.store.redaction import Redactor
from skillopt_kernel.store.together import Together

JOURNAL = "outcomes.jsonl"
CONVERSATION = "conversation.json"
FILES = "files.json"
_PROMPTS = {"system": "target_system_prompt.txt", "user": "target_user_prompt.txt"}
_log = logging.getLogger(__name__)


class OutcomeStore:
    """The one writer and reader of a run's outcomes, for many threads at once.

    Holds at most one scored outcome for each (skill hash, task, content of the task, sample): the first one
    that is put. A missing outcome is written for the record and never answers a question. `unisolated` counts the
    attempts whose agent program could see more than its own.
    """

    def __init__(self, run_folder: Path, redactor: Redactor | None = None) -> None:
        self._root = run_folder
        self._redactor = redactor or Redactor()
        self._changed = threading.Condition(threading.Lock())
        self._under_way: dict[bytes, str] = {}
        self._offsets: dict[bytes, int] = {}
        self._unscored: dict[bytes, int] = {}
        self._seconds: dict[str, float] = {}
        self._folders: set[str] = set()
        self._prompts: dict[bytes, str] = {}
        self.unisolated = 0
        self._hash_of = lru_cache(maxsize=64)(hash_of_skill)
        self._journal = files.Journal(run_folder / JOURNAL)
        for offset, row in files.read_lines(self._journal.path):
            try:
                key = _digest(row["skill_hash"], row["id"], row["content_hash"], row["sample"])
                self._remember(key, row, offset)
            except (KeyError, TypeError, AttributeError):
                _log.warning("%s: the line at byte %d is no outcome and was passed over", self._journal.path, offset)
        self._reader = self._journal.path.open("rb")
        self._together = Together(self._append)

    @property
    def count(self) -> int:
        """How many scored outcomes there are."""
        return len(self._offsets)

    def find(self, ask: Ask) -> Outcome | None:
        """The scored outcome without its trajectory, or `None` when it must be asked."""
        with self._changed:
            return self._read(self._offsets.get(self._key(ask)))

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
        key, task, redact = self._key(ask), ask.task, self._redactor.redact_value
        attempt, score, missing = redact(outcome.attempt), redact(outcome.score), redact(outcome.missing)
        with self._changed:
            while key in self._under_way:
                self._changed.wait()
            if (earlier := self._read(self._offsets.get(key))) is not None:
                return earlier
            place = "" if attempt is None else self._place(ask, outcome.folder)
            self._under_way[key] = place.casefold()
        try:
            whole = Outcome(task.id, task.kind, self._hash_of(ask.skill), ask.sample, attempt, score, missing, place)
            line, row, stored = _encoded(whole, task.content_hash())
            contents = {} if attempt is None else _contents(attempt)
            self._together.put((key, row, line, contents))
            return stored
        finally:
            with self._changed:
                del self._under_way[key]
                self._changed.notify_all()

    def _append(self, put: list[tuple[bytes, dict[str, Any], bytes, Mapping[str, bytes]]]) -> None:
        """Commit outcomes, of several threads together: the files of their attempts, and then their lines."""
        files.require(self._journal.path)
        for _, row, _, contents in put:
            if contents:
                self._write_folder(self._root / row["folder"], contents)
        offset = self._journal.append(b"".join(line for _, _, line, _ in put))
        with self._changed:
            for key, row, line, _ in put:
                self._remember(key, row, offset)
                offset += len(line)

    def _write_folder(self, folder: Path, contents: Mapping[str, bytes]) -> None:
        """Write files into a folder of their own.

        Written once and not renamed into place: nothing refers to the folder before the journal's line does. What lies
        there has no line: it was left by a process that was killed. A prompt that was written before gets a further
        name: the same skills and tasks are asked again and again, and each new file takes time and room.
        """
        try:
            folder.mkdir(mode=files.FOLDER_MODE)
        except OSError:  # the first one here, or something lies there
            shutil.rmtree(folder, ignore_errors=True)
            files.make_folder(folder)
        for name, data in contents.items():
            path, known = f"{folder}/{name}", self._prompts if name in _PROMPTS.values() else {}
            content = hashlib.blake2b(data, digest_size=16).digest()
            with suppress(KeyError, OSError):  # it is new; or gone, has all the names it may, or cannot have others
                os.link(known[content], path)
                continue
            files.write_new(path, data)
            known[content] = path  # once it is whole: a full disk leaves a part

    def with_trajectory(self, outcome: Outcome) -> Outcome:
        """The outcome with the turns and files of its attempt, read from its folder.

        Where they were lost or damaged, the trajectory stays empty and a warning is logged; the score stands.
        """
        attempt, folder = outcome.attempt, outcome.folder
        whole = _read_attempt(self._root / folder, attempt) if attempt is not None and folder else None
        return attrs.evolve(outcome, attempt=whole or attempt)

    def unscored_attempt(self, ask: Ask) -> Attempt | None:
        """The whole attempt that was kept because its scoring failed, so that only scoring is asked again."""
        with self._changed:
            kept = self._read(self._unscored.get(self._key(ask)))
        return _read_attempt(self._root / kept.folder, kept.attempt) if kept and kept.attempt else None

    def sync(self) -> None:
        """Make what is committed survive a loss of power."""
        with self._changed:
            self._journal.sync()

    def __enter__(self) -> OutcomeStore:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._journal.close()
            self._reader.close()

    # With the lock held (or, in `__init__`, alone) -----------------------------------------------------------

    def _key(self, ask: Ask) -> bytes:
        return _digest(self._hash_of(ask.skill), ask.task.id, ask.task.content_hash(), ask.sample)

    def _read(self, offset: int | None) -> Outcome | None:
        if offset is None:
            return None
        self._reader.seek(offset)
        try:
            return fields.outcome_from_fields(files.parse_line(self._reader.readline()) or {})
        except ValueError as error:
            raise RunDirectoryError(
                f"{self._journal.path}: the line at byte {offset} was changed from outside ({error}). Restore the "
                f"file, or remove that line: its task is asked again."
            ) from error

    def _remember(self, key: bytes, row: dict[str, Any], offset: int) -> None:
        if "attempt" in row:
            self._seconds[row["id"]] = row["attempt"].get("seconds", 0.0)
            self._folders.add(row["folder"].casefold())
            self.unisolated += row["attempt"].get("isolated") is False
        if "hard" in row:
            self._offsets.setdefault(key, offset)
            self._unscored.pop(key, None)
        elif "attempt" in row:
            self._unscored[key] = offset

    def _place(self, ask: Ask, folder: str) -> str:
        """The folder that an attempt gets. One that is committed is never written over.

        Another sample or skill may have its attempt of this task beside it. Case is ignored, as some file systems do.
        """
        further = f"-attempt{attempt}" if (attempt := attempt_number(ask.sample)) > 1 else ""
        place = name = f"{folder}/predictions/{files.safe_name(ask.task.id)}{further}"
        number = 1
        while place.casefold() in self._folders or place.casefold() in self._under_way.values():
            number += 1
            place = f"{name}-{number}"
        return place


def _digest(skill_hash: str, task_id: str, content_hash: str, sample: int) -> bytes:
    text = f"{skill_hash}\0{content_hash}\0{sample}\0{task_id}"
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).digest()


def _encoded(outcome: Outcome, content_hash: str) -> tuple[bytes, dict[str, Any], Outcome]:
    """The line, its row, and the outcome as it will be read back, so that a live and a resumed run see the same."""
    try:
        row = {**fields.outcome_fields(outcome), "content_hash": content_hash, "time": files.now()}
        line = files.json_line(row)
        return line, row, fields.outcome_from_fields(files.parse_line(line) or {})
    except (TypeError, ValueError, RecursionError) as error:
        raise SkillOptError(
            f"the outcome of task {outcome.task_id!r} cannot be stored: {error}. The environment must give texts for "
            f"`output` and `feedback`, finite numbers for named scores, and JSON values for `state`."
        ) from error


# The folder of one attempt ---------------------------------------------------------------------------------


def _contents(attempt: Attempt) -> dict[str, bytes]:
    """What lies in the folder of an attempt: its turns, the prompts that the target saw, and its files.

    `files.json` says under which name each of the attempt's files lies there.
    """
    contents = {CONVERSATION: files.json_list(fields.trajectory_fields(attempt.trajectory))}
    said = {turn.role: turn.content for turn in reversed(attempt.trajectory)}  # of each role what it said first
    contents |= {_PROMPTS[role]: said[role].encode("utf-8", "replace") for role in _PROMPTS if role in said}
    if attempt.files:
        names = _stored_names(attempt)
        contents |= {names[name]: data for name, data in attempt.files.items()}
        contents[FILES] = files.json_line(names)
    return contents


def _stored_names(attempt: Attempt) -> dict[str, str]:
    """Each file's name -> a name that is safe on every system and taken by nothing else."""
    taken = {CONVERSATION, FILES, *_PROMPTS.values()}
    names: dict[str, str] = {}
    for number, name in enumerate(attempt.files):
        stored = files.safe_name(name)
        while stored.casefold() in taken:
            stored = f"{number}-{stored}"
        taken.add(stored.casefold())
        names[name] = stored
    return names


def _read_attempt(folder: Path, attempt: Attempt) -> Attempt | None:
    """`attempt` with its turns and files, or `None`, with a warning, when they were lost or damaged."""
    try:
        trajectory = fields.structure(files.read_json(folder / CONVERSATION), Trajectory)
        names = fields.structure(files.read_json(folder / FILES), dict[str, str]) if (folder / FILES).exists() else {}
        contents = {name: (folder / stored).read_bytes() for name, stored in names.items()}
    except (RunDirectoryError, ValueError, OSError) as error:
        _log.warning("the attempt in %s cannot be read back: %s", folder, error)
        return None
    return attrs.evolve(attempt, trajectory=trajectory, files=contents)
