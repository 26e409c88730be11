"""What the plugin keeps between steps: notes that fell with a candidate, and when merging was last asked for.

Whether the last candidate was kept is seen from the current skill, so that a run that is resumed sees it, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from skillopt_hook_skill_aware.notes import key_of, without

TRIES = 2
"""With so many candidates a note may fall. One that fell twice may be what they fall for: it must be found again."""

STATE_LIMIT = 48_000
"""Bytes of waiting notes that are kept, well below what a plugin may save."""


@frozen
class Waiting:
    """The plugin's state.

    notes  note -> with how many candidates it fell, in order
    tried  digest of the notes in the last candidate's appendix; "" when it brought none
    asked  of how many notes merging was last asked, 0: never; merged: how many it left
    """

    notes: Mapping[str, int]
    tried: str = ""
    asked: int = 0
    merged: int = 0

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Waiting:
        """What `as_json` wrote; nothing waits where nothing was written."""
        return cls(**state) if state else cls({})

    def as_json(self) -> dict[str, Any]:
        return attrs.asdict(self)

    def settled(self, existing: Sequence[str]) -> tuple[Waiting, tuple[str, ...]]:
        """What still waits beside the current skill's notes, and the notes that are given up.

        A candidate that was kept has its notes in the current skill. Else they fell, and so did what was merged.
        """
        if self.tried == digest(existing):
            return attrs.evolve(self, notes={}, tried="", asked=self.merged), ()
        falls = 1 if self.tried else 0
        open_notes = {note: self.notes[note] + falls for note in without(self.notes, existing)}
        kept = {note: count for note, count in open_notes.items() if count < TRIES}
        told = attrs.evolve(self, notes=kept, tried="", merged=self.asked)
        return told, tuple(note for note in open_notes if note not in kept)

    def with_notes(self, notes: Sequence[str]) -> Waiting:
        """With these notes waiting, too, as far as there is room for them."""
        waiting = {**self.notes, **{note: 0 for note in notes if note not in self.notes}}
        while len(json.dumps(waiting)) > STATE_LIMIT:
            waiting.popitem()
        return attrs.evolve(self, notes=waiting)

    def grown(self, count: int, threshold: int) -> bool:
        """Whether merging is to be asked for: more notes than the threshold, and than when it was last asked."""
        return 0 < threshold < count and count > self.asked


def digest(notes: Sequence[str]) -> str:
    """16 hex digits over what the notes say, in order."""
    return hashlib.sha256("\n".join(map(key_of, notes)).encode("utf-8")).hexdigest()[:16]
