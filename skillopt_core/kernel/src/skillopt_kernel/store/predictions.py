"""What one attempt leaves in its folder: conversation.json, the prompts that the target saw, and its files.

Written once and not renamed into place: nothing refers to the folder before the journal's line does.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path, PurePosixPath

import attrs

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.records import Attempt, ToolCall
from skillopt_kernel.store.fields import take, trajectory_from_fields, turn_fields
from skillopt_kernel.store.files import FOLDER_MODE, json_line, json_list, open_private, read_json, safe_name, writing
from skillopt_kernel.store.redaction import Redactor

_log = logging.getLogger(__name__)

CONVERSATION = "conversation.json"
FILES = "files.json"
_PROMPTS = {"system": "target_system_prompt.txt", "user": "target_user_prompt.txt"}


def write(folder: Path, attempt: Attempt) -> None:
    """Write the turns and files of an attempt into a folder of its own.

    `files.json` says under which name each of the attempt's files lies there; it is left out when there are none.
    """
    contents = {CONVERSATION: json_list(json_line(turn_fields(turn)) for turn in attempt.trajectory)}
    for role, name in _PROMPTS.items():
        first = next((turn for turn in attempt.trajectory if turn.role == role), None)
        if first is not None:
            contents[name] = first.content.encode("utf-8", errors="replace")
    if attempt.files:
        names = _stored_names(attempt)
        contents |= {names[name]: data for name, data in attempt.files.items()}
        contents[FILES] = json_line(names)
    with writing(folder):
        _make_empty(folder)
        for name, data in contents.items():
            path = folder / name
            if "/" in name:
                path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with open(path, "xb", buffering=0, opener=open_private) as handle:
                written = handle.write(data)
                while written < len(data):
                    written += handle.write(data[written:])


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileNotFoundError:
        folder.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        # Left by a process that was killed before its line, or by an attempt that has no line any more.
        if not folder.is_dir():
            raise
        shutil.rmtree(folder)
        folder.mkdir(mode=FOLDER_MODE)


def _stored_names(attempt: Attempt) -> dict[str, str]:
    """Each file's name -> a relative path that is safe on every system and taken by nothing else.

    As a name may be the folder of another's, a clash is settled at the first part.
    """
    taken = {CONVERSATION, FILES, *_PROMPTS.values()}
    names: dict[str, str] = {}
    for name in attempt.files:
        parts = [safe_name(part) for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
        first, *rest = parts or [safe_name(name)]
        path, number = "/".join((first, *rest)), 1
        while _clashes(path, taken):
            number += 1
            path = "/".join((f"{number}-{first}", *rest))
        taken.add(path.casefold())
        names[name] = path
    return names


def _clashes(path: str, taken: set[str]) -> bool:
    path = path.casefold()
    return any(path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in taken)


def read(folder: Path, attempt: Attempt) -> Attempt | None:
    """`attempt` with its turns and files, or `None`, with a warning, when they were lost or damaged."""
    try:
        trajectory = trajectory_from_fields(read_json(folder / CONVERSATION))
        files: dict[str, bytes] = {}
        if (folder / FILES).exists():
            names = read_json(folder / FILES)
            files = {name: (folder / take(names, name, str)).read_bytes() for name in names}
    except (RunDirectoryError, ValueError, TypeError, OSError) as error:
        _log.warning("the attempt in %s cannot be read back: %s", folder, error)
        return None
    return attrs.evolve(attempt, trajectory=trajectory, files=files)


def redacted(attempt: Attempt, redactor: Redactor) -> Attempt:
    """The attempt with every configured credential replaced, in texts and in files that are text."""
    if not redactor.active:
        return attempt
    redact = redactor.redact
    turns = tuple(
        attrs.evolve(
            turn,
            content=redact(turn.content),
            tool_calls=tuple(ToolCall(call.id, call.name, redact(call.arguments)) for call in turn.tool_calls),
        )
        for turn in attempt.trajectory
    )
    return attrs.evolve(
        attempt,
        output=redact(attempt.output),
        trajectory=turns,
        state=redactor.redact_value(attempt.state),
        files={name: _redacted_bytes(data, redactor) for name, data in attempt.files.items()},
    )


def _redacted_bytes(data: bytes, redactor: Redactor) -> bytes:
    try:
        return redactor.redact(data.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return data  # binary: another length would break its format
