"""The two things people do: train a skill, and evaluate one. Usable twice in one process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from skillopt_kernel.config import load_config
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.gating import compute_score
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.final import by_kind
from skillopt_kernel.loop.opening import open_run
from skillopt_kernel.loop.preparing import Prepared, prepare
from skillopt_kernel.loop.scoring import outcomes_of
from skillopt_kernel.loop.start import read_skill
from skillopt_kernel.loop.trainer import run_training
from skillopt_kernel.records import Task
from skillopt_kernel.splits import split_name, tasks_of
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.files import write_json

Source = Config | str | Path | Mapping[str, Any]


@frozen(kw_only=True)
class Evaluation:
    """What `evaluate` returns and `eval_summary.json` holds; scores over the scored tasks, `None`: none is."""

    skill: str
    split: str
    folder: str
    n_items: int
    n_scored: int
    hard: float | None
    soft: float | None
    by_kind: Mapping[str, Any]


def train(
    config: Source,
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    plugins: Sequence[tuple[str, Any]] = (),
    stop: threading.Event | None = None,
) -> RunSummary:
    """Train a skill and return the run's summary; the text is `best_skill.md` in `summary.folder`.

    config     a loaded configuration, a path, a packaged name ("demo") or a mapping
    overrides  as `-o`: "train.num_epochs=2"
    out        the run directory; default: `env.out_root`, else outputs/<name>-<8 hex of the fingerprint>
    fresh      begin beside an earlier run of that name. Without it an unfinished run there is resumed and a
               finished one is returned as it is
    plugins    further hook plugins as (name, object), asked after the configuration's own and before the defaults
    stop       once set, what is in flight is finished and saved, and `StoppedEarly` is raised

    Raises `SkillOptError` with a sentence for whatever a user can put right.
    """
    prepared = prepare(loaded_config(config, overrides), plugins)
    directory = open_directory(prepared, out, fresh=fresh)
    if directory.finished and not directory.differences(prepared.fingerprint):
        return RunSummary.from_json(directory.summary(), folder=str(directory.root))
    with open_run(prepared, directory, stop or threading.Event()) as run:
        if hasattr(prepared.environment, "save_splits"):
            prepared.environment.save_splits(directory.root)
        return run_training(run)


def evaluate(
    config: Source,
    skill: str | Path,
    split: str = "valid_seen",
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    plugins: Sequence[tuple[str, Any]] = (),
    stop: threading.Event | None = None,
) -> Evaluation:
    """Evaluate the skill in the file `skill` on one split, or on "all", and write `eval_summary.json`.

    split: train; val, valid_seen or selection; test or valid_unseen; all. The folder is `out`, or
    outputs/eval-<name>-<8 hex>, and outcomes that are there already are not asked again.
    """
    text = read_skill(Path(skill), "--skill")
    prepared = prepare(loaded_config(config, overrides), plugins, skill=text)
    name, tasks = asked_tasks(prepared, split)
    directory = open_directory(prepared, out, fresh=False, prefix=f"eval-{name}-")
    with open_run(prepared, directory, stop or threading.Event()) as run:
        with run.stage("evaluate", tasks=len(tasks)) as made:
            outcomes = outcomes_of(run, text, tasks, Purpose(name, name))
            made["hard"], made["soft"] = hard, soft = compute_score(outcomes)
        evaluation = Evaluation(
            skill=str(skill),
            split=name,
            folder=str(directory.root),
            n_items=len(outcomes),
            n_scored=sum(outcome.scored for outcome in outcomes),
            hard=hard,
            soft=soft,
            by_kind=by_kind(outcomes),
        )
        write_json(directory.root / "eval_summary.json", attrs.asdict(evaluation))
        run.emit("run_finished", status="finished", hard=hard, soft=soft)
    return evaluation


def asked_tasks(prepared: Prepared, split: str) -> tuple[str, tuple[Task, ...]]:
    """The canonical name of a split and its tasks; refuses a split without tasks."""
    splits = prepared.splits
    name = "all" if split == "all" else split_name(split)
    tasks = splits.train + splits.selection + splits.test if name == "all" else tasks_of(splits, name)
    if not tasks:
        raise SkillOptError(f"--split {split}: the split {name} has no tasks; choose another split.")
    return name, tasks


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

    chosen = out if out is not None else prepared.settings.env.out_root
    if chosen is None:
        chosen = Path("outputs") / RunDirectory.default_name(f"{prefix}{prepared.settings.name}", fingerprint)
    return RunDirectory.open(Path(chosen), fingerprint, fresh=fresh, may_change=may_change)
