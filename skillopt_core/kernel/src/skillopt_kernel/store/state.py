"""What a run commits: `runtime_state.json`, the marker that is written last, and `history.json` before it.

A step counts from the moment its state is on disk. What lies on disk beyond the state was left by a process
that was killed, and is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import attrs
from attrs import field, frozen

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.fields import structure
from skillopt_kernel.store.files import json_list, read_json, write_bytes, write_json

STATE = "runtime_state.json"
HISTORY = "history.json"


def _inside(_: object, attribute: attrs.Attribute[str], path: str) -> None:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"{attribute.name}: the path {path!r} must lie inside the run directory")


@frozen(kw_only=True)
class RunState:
    """The committed state between two steps.

    The paths are relative to the run directory. Scores are gate scores, `None` while nothing is scored (0.0 is
    a score). `extra` holds what else the loop keeps, as JSON values.
    """

    last_completed_step: int
    current_skill_path: str = field(validator=_inside)
    current_score: float | None
    current_origin: str
    best_skill_path: str = field(validator=_inside)
    best_score: float | None
    best_step: int
    best_origin: str
    extra: Mapping[str, Any] = field(factory=dict)

    def save(self, root: Path) -> None:
        """The commit: whatever the state speaks of must be on disk before."""
        write_json(root / STATE, attrs.asdict(self))

    @classmethod
    def load(cls, root: Path) -> RunState | None:
        """The last commit, or `None` before the first. Raises `RunDirectoryError` naming file and field."""
        path = root / STATE
        if not path.exists():
            return None
        try:
            return structure(read_json(path), cls)
        except ValueError as error:
            raise RunDirectoryError(
                f"{path}: the saved state cannot be used: {error}. Restore the file, or start again with --fresh."
            ) from error


class History:
    """`history.json`: the list of step records, written whole at each commit, before the state."""

    def __init__(self, root: Path) -> None:
        self.path = root / HISTORY

    def load(self) -> list[dict[str, Any]]:
        """All records; none when there is no file. Raises `RunDirectoryError` naming the file."""
        if not self.path.exists():
            return []
        rows = read_json(self.path)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise RunDirectoryError(f"{self.path}: this must be a list of step records; restore the file.")
        return rows

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        write_bytes(self.path, json_list(records))

    def truncate(self, last_step: int) -> list[dict[str, Any]]:
        """The records up to the committed step; later ones, of a step that is taken again, are dropped.

        Raises `RunDirectoryError` when a committed step's record is not there.
        """
        rows = self.load()
        kept = rows[:last_step]
        if [row.get("step") for row in kept] != list(range(1, last_step + 1)):
            raise RunDirectoryError(
                f"{self.path}: the saved state stands at step {last_step}, but the records here are not steps 1 to "
                f"{last_step}. Restore the file, or start again with --fresh."
            )
        if len(kept) != len(rows):
            self.write(kept)
        return kept
