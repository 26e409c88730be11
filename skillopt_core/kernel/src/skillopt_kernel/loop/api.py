"""Training a skill, as people call it; `evaluation` has the other thing they do. Usable twice in one process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt_kernel.config import load_config
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import BudgetSpent, SkillOptError
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.budget import Budget
from skillopt_kernel.loop.opening import open_run
from skillopt_kernel.loop.preparing import Prepared, prepare
from skillopt_kernel.loop.spent import finish_within
from skillopt_kernel.loop.trainer import run_training
from skillopt_kernel.store.directory import RunDirectory

Source = Config | str | Path | Mapping[str, Any]


def train(
    config: Source,
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    replay: str | Path | None = None,
    plugins: Sequence[tuple[str, Any]] = (),
    stop: threading.Event | None = None,
    budget: Budget | None = None,
) -> RunSummary:
    """Train a skill and return the run's summary; the text is `best_skill.md` in `summary.folder`.

    config     a loaded configuration, a path, a packaged name ("demo") or a mapping
    overrides  as `-o`: "train.num_epochs=2"
    out        the run directory; default: `env.out_root`, else outputs/<name>-<8 hex of the fingerprint>
    fresh      begin beside an earlier run of that name. Without it an unfinished run there is resumed and a
               finished one is returned as it is
    replay     the directory of a run: its ledger answers every call and no model is asked. The default folder is then
               outputs/replay-<name>-<8 hex>; `env.out_root`, where the recorded run may lie, is not looked at
    plugins    further hook plugins as (name, object), asked after the configuration's own and before the defaults
    stop       once set, what is in flight is finished and saved, and `StoppedEarly` is raised
    budget     shared with other runs in this process, in place of the configuration's own section `budget`. A run
               that a limit ends returns its summary with the status "budget"

    Raises `SkillOptError` with a sentence for whatever a user can put right.
    """
    prepared = prepare(loaded_config(config, overrides), plugins, replay=replay)
    directory = open_directory(prepared, out, fresh=fresh, prefix="replay-" if replay else "")
    return train_prepared(prepared, directory, stop, budget)


def train_prepared(
    prepared: Prepared, directory: RunDirectory, stop: threading.Event | None = None, budget: Budget | None = None
) -> RunSummary:
    """The second half of `train`, for who looks at what is prepared before anything is begun."""
    if directory.finished and not directory.differences(prepared.fingerprint):
        if budget is not None:
            budget.count(directory.root)
        return RunSummary.from_json(directory.summary(), folder=str(directory.root))
    with open_run(prepared, directory, stop or threading.Event(), budget) as run:
        if hasattr(prepared.environment, "save_splits"):
            prepared.environment.save_splits(directory.root)
        try:
            return run_training(run)
        except BudgetSpent as spent:
            return finish_within(run, spent)


def loaded_config(config: Source, overrides: Sequence[str]) -> Config:
    """`config` as a loaded configuration."""
    if isinstance(config, Config):
        if overrides:
            raise SkillOptError("overrides cannot be given with a loaded configuration; give them to load_config.")
        return config
    return load_config(config, overrides)


def open_directory(prepared: Prepared, out: str | Path | None, *, fresh: bool, prefix: str = "") -> RunDirectory:
    """The run's directory, made or taken up; a directory of another configuration is refused.

    More epochs than before are another configuration only where the schedule is stretched over all of them.
    """
    fingerprint = prepared.fingerprint
    stretched = getattr(prepared.scheduler, "depends_on_total_steps", True)

    def may_change(key: str, old: Any, new: Any) -> bool:
        return key == "train.num_epochs" and not stretched and isinstance(old, int) and new >= old

    chosen = out if out is not None or prepared.evaluates or prepared.replay else prepared.settings.env.out_root
    if chosen is None:
        chosen = Path("outputs") / RunDirectory.default_name(f"{prefix}{prepared.settings.name}", fingerprint)
    return RunDirectory.open(Path(chosen), fingerprint, fresh=fresh, may_change=may_change)
