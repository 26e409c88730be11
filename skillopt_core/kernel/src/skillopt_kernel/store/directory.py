"""The run directory: what lies where in it, and whether it is this run's.

Every path that a file inside names is relative to it, so that the directory can be moved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import read_object, read_text, require, safe_name, write_json, write_text, writing
from skillopt_kernel.store.lock import HOLDER, LOCK
from skillopt_kernel.store.patterns import clipped, redact_diagnostics
from skillopt_kernel.store.state import RunState

CONFIG = "config.json"
FINGERPRINT = "fingerprint.json"
SUMMARY = "summary.json"
FINISHED = "finished"

MayChange = Callable[[str, Any, Any], bool]
"""Asked with a fingerprint's key and its old and new value: whether a run may go on with the new one."""


class RunDirectory:
    """The layout of one run directory. Makes nothing until something is written."""

    def __init__(self, root: Path) -> None:
        self._root, self._begun_here = root, False

    @property
    def root(self) -> Path:
        """Raises `RunDirectoryError` once what was begun here is no longer there, so that no second one arises."""
        if self._begun_here:
            require(self._root / FINGERPRINT)
        return self._root

    @classmethod
    def open(
        cls, root: Path, fingerprint: Mapping[str, Any], *, fresh: bool = False, may_change: MayChange | None = None
    ) -> RunDirectory:
        """The directory at `root`, to begin or to go on with; `fresh`: the first of `root`, `root-2`, ... that is free.

        Raises `RunDirectoryError` for a folder that holds something else, and for a run of another
        configuration, showing each difference.
        """
        with writing(root):  # a name that is too long, a folder that may not be looked into
            directory = cls(free_place(root) if fresh else root)
            differences = directory.differences(fingerprint) if directory.begun else {}
        refused = {key: both for key, both in differences.items() if may_change is None or not may_change(key, *both)}
        kind = refused.get("evaluates")
        if kind is not None and None in kind:
            held = "a training run; an evaluation" if kind[0] is None else "an evaluation; a training run"
            raise RunDirectoryError(f"{root} holds {held} has a folder of its own: choose another (--out).")
        if refused:
            named = {"start_skill": "start_skill (hash of what the target is shown)"}
            lines = [
                f"  {named.get(key, key)}: was {_shown(old)}, now {_shown(new)}" for key, (old, new) in refused.items()
            ]
            raise RunDirectoryError(
                f"the {'evaluation' if 'evaluates' in fingerprint else 'run'} in {root} was begun with another "
                f"configuration, so it cannot go on with this one:\n"
                + "\n".join(lines)
                + "\nPut these back, or begin another run beside it with --fresh (or in another folder with --out)."
            )
        return directory

    @staticmethod
    def default_name(config_name: str, fingerprint: Mapping[str, Any]) -> str:
        """`<configuration's name>-<8 hex of the fingerprint>`."""
        canonical = json.dumps(fingerprint, sort_keys=True, ensure_ascii=False, default=str)
        return f"{safe_name(config_name)}-{hashlib.sha256(canonical.encode('utf-8')).hexdigest()[:8]}"

    @property
    def begun(self) -> bool:
        """Whether a run has been begun here. Raises `RunDirectoryError` for what is no run directory."""
        if not self.root.exists():
            return False
        if not self.root.is_dir():
            raise RunDirectoryError(f"{self.root} is a file, not a folder; choose another run directory (--out).")
        if (self.root / FINGERPRINT).exists():
            return True
        # config.json comes first: without a fingerprint the process was killed before anything was spent.
        ours = {CONFIG, LOCK, HOLDER}
        strange = sorted(path.name for path in self.root.iterdir() if path.name not in ours and path.suffix != ".tmp")
        if strange:
            raise RunDirectoryError(
                f"{self.root} is not empty and not a run directory (it holds {', '.join(strange[:3])}); choose another "
                f"folder (--out)."
            )
        return False

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end and its summary says so."""
        return (self.root / SUMMARY).exists() and self.summary().get("status") == FINISHED

    def summary(self) -> dict[str, Any]:
        """`summary.json`. Raises `RunDirectoryError` when there is none or it is damaged."""
        return read_object(self.root / SUMMARY)

    # Configuration and fingerprint --------------------------------------------------------------------------

    def begin(self, config: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> None:
        """Write `config.json` (resolved, without credentials) and then `fingerprint.json`; under the run's lock.

        A summary that is there belongs to a run that now goes on (with more epochs), so it is taken away first.
        """
        (self.root / SUMMARY).unlink(missing_ok=True)
        write_json(self.root / CONFIG, dict(config))
        write_json(self.root / FINGERPRINT, dict(fingerprint))
        self._begun_here = True

    def differences(self, fingerprint: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Each key (with dots) whose value differs from the one the run was begun with: (old, new); `None` is unset."""
        old = _flat(read_object(self.root / FINGERPRINT))
        new = _flat(json.loads(json.dumps(fingerprint, default=str)))
        return {key: (old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)}

    # Where things lie ---------------------------------------------------------------------------------------

    def step(self, number: int, batch: int | None = None) -> Path:
        """Of a step, or of one of its accumulation batches; as `rollout` and `patches`."""
        folder = self.root / "steps" / f"step_{number:04d}"
        return folder if batch is None else folder / f"batch_{batch}"

    def rollout(self, number: int, batch: int | None = None) -> Path:
        return self.step(number, batch) / "rollout"

    def patches(self, number: int, batch: int | None = None) -> Path:
        return self.step(number, batch) / "patches"

    def selection_eval(self, number: int) -> Path:
        return self.step(number) / "selection_eval"

    def slow_update(self, epoch: int) -> Path:
        return self.root / "slow_update" / f"epoch_{epoch:02d}"

    def meta_skill(self, epoch: int) -> Path:
        return self.root / "meta_skill" / f"epoch_{epoch:02d}"

    def skill(self, step: int) -> Path:
        """The current skill as it was after `step`; 0 is the start skill."""
        return self.root / "skills" / f"skill_v{step:04d}.md"

    def relative(self, path: Path) -> str:
        """`path` as files inside name it: relative, with forward slashes."""
        return path.relative_to(self.root).as_posix()

    # Skills -------------------------------------------------------------------------------------------------

    def save_skill(self, step: int, text: str) -> None:
        """Write the skill after `step`. One that is committed is never written over.

        What a process left that was killed before the commit of `step` is replaced: that step is taken again.
        """
        path = self.skill(step)
        if path.exists() and read_text(path) == text:
            return
        if path.exists():
            state = RunState.load(self.root)
            if state is not None and state.last_completed_step >= step:
                raise RunDirectoryError(
                    f"{path}: the skill of step {step} is saved already and differs from the one to be saved now. It "
                    f"was changed from outside; restore it, or start again with --fresh."
                )
        write_text(path, text)

    def save_best(self, text: str) -> None:
        """Write `best_skill.md`, the copy for people; nothing is ever read back from it."""
        write_text(self.root / "best_skill.md", text)


def free_place(root: Path) -> Path:
    """The first of `root`, `root-2`, `root-3`, ... that does not exist."""
    places = (root if number == 1 else root.with_name(f"{root.name}-{number}") for number in count(1))
    return next(place for place in places if not place.exists())


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flat(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {f"{prefix}{key}": item}
    return flat


def _shown(value: Any) -> str:
    text = "(not set)" if value is None else redact_diagnostics(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 100 else f"{clipped(text, 97)}..."
