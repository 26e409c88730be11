"""The evaluation of one skill on one split, in a folder of its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import DataError, RunDirectoryError, SkillOptError
from skillopt_kernel.loop.api import Source, loaded_config, open_directory
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.final import by_kind, grouped, hard_interval
from skillopt_kernel.loop.opening import open_run
from skillopt_kernel.loop.preparing import Prepared, prepare
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.scoring import outcomes_of
from skillopt_kernel.loop.start import StartSkill, skill_at
from skillopt_kernel.models.spending import token_summary
from skillopt_kernel.records import Outcome, Task
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.splits import PARTS
from skillopt_kernel.store.files import read_object, write_json
from skillopt_kernel.store.reading import EVALUATION

ALIASES = {"val": "selection", "valid_seen": "selection", "valid_unseen": "test"}
"""Other names of the splits."""

ALL = "all"
"""The name of all three together."""


@frozen(kw_only=True)
class Evaluation:
    """What `evaluate` returns and `eval_summary.json` holds; scores over the scored tasks, `None`: none is.

    skill             as it was named, and the hash of what the target was shown of it
    interval          95 % of `hard`, low and high: Wilson's where every score is 0 or 1, else the bootstrap of the mean
    by_kind           task type, and "overall" -> total, scored, hard_acc, soft, interval
    token_summary     what the model calls used, by stage and `_total`, as in summary.json
    already_finished  the folder held this evaluation, and nothing was done
    """

    skill: str
    skill_hash: str
    split: str
    folder: str
    n_items: int
    n_scored: int
    hard: float | None
    soft: float | None
    interval: tuple[float, float] | None
    by_kind: Mapping[str, Any]
    token_summary: Mapping[str, Any]
    already_finished: bool = False

    def as_json(self) -> dict[str, Any]:
        """What `eval_summary.json` holds: all but where the folder lies, and what this command found there."""
        value = attrs.asdict(self)
        del value["folder"], value["already_finished"]
        return value


def evaluate(
    config: Source,
    skill: str | Path,
    split: str = "valid_seen",
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    replay: str | Path | None = None,
    plugins: Sequence[tuple[str, Any]] = (),
    stop: threading.Event | None = None,
) -> Evaluation:
    """Evaluate a skill on one split and write `eval_summary.json` into a folder of its own.

    skill  its file, or the directory of a finished run, whose best skill is meant
    split  train; val, valid_seen or selection (the first `evaluation.sel_env_num` tasks); test or valid_unseen (the
           first `evaluation.test_env_num`); all: every task of the three, whatever those keys say
    out    the folder; default: outputs/eval-<split>-<name>-<8 hex of the fingerprint>. `env.out_root` counts only
           where it was given on the command line: in a file it is where training writes
    fresh  begin beside an earlier evaluation. Without it an unfinished one goes on, and a finished one is returned

    replay the directory of a training or an evaluation whose ledger answers every call. The default folder is then
           outputs/replay-eval-<split>-...

    The other arguments are those of `train`. Raises `SkillOptError` with a sentence for what a user can put right.
    """
    text, source = skill_at(Path(skill), "--skill")
    settings = loaded_config(config, overrides)
    name = split_name(split)
    if name == ALL:
        first = {"evaluation.sel_env_num": 0, "evaluation.test_env_num": 0}
        settings = settings.with_overrides(first, origin="--split all")
    start = StartSkill(text, {"path": str(skill), **source, "hash": skill_hash(text)})
    prepared = prepare(settings, plugins, skill=start, evaluates=name, replay=replay)
    tasks = tasks_asked(prepared, name)
    prefix = f"{'replay-' if replay else ''}eval-{name}-"
    directory = open_directory(prepared, out or _asked_folder(settings), fresh=fresh, prefix=prefix)
    if directory.begun and not directory.differences(prepared.fingerprint):
        found = _read(directory.root)
        if found is not None and found.n_scored == found.n_items:
            return attrs.evolve(found, already_finished=True)
    with open_run(prepared, directory, stop or threading.Event()) as run:
        with run.stage("evaluate", tasks=len(tasks)) as made:
            outcomes = outcomes_of(run, text, tasks, Purpose(name, name))
            evaluation = _summarise(run, str(skill), text, outcomes)
            made["hard"], made["soft"] = evaluation.hard, evaluation.soft
        write_json(directory.root / EVALUATION, evaluation.as_json())
        run.emit("run_finished", status="finished", hard=evaluation.hard, soft=evaluation.soft)
    return evaluation


def split_name(name: str) -> str:
    """Which of train, selection, test and all a name means. Raises `DataError` for an unknown one."""
    part = name.strip().lower()
    part = ALIASES.get(part, part)
    if part not in (*PARTS, ALL):
        raise DataError(f"there is no split {name!r}; the known names are {', '.join((*PARTS, *ALIASES, ALL))}.")
    return part


def tasks_asked(prepared: Prepared, name: str) -> tuple[Task, ...]:
    """The tasks of a split, or of all. Raises `SkillOptError` when there is none."""
    splits = prepared.splits
    parts = PARTS if name == ALL else (name,)
    tasks = tuple(task for part in parts for task in getattr(splits, part))
    if not tasks:
        raise SkillOptError(f"--split: the split {name} has no tasks; choose another split.")
    return tasks


def _asked_folder(settings: Config) -> Path | None:
    """`env.out_root`, if it was meant for this evaluation: given on the command line, not in a file."""
    return settings.env.out_root if settings.origins.get("env.out_root", "").startswith("-") else None


def _read(folder: Path) -> Evaluation | None:
    """What `eval_summary.json` says; `None` where there is none that can be used, which is then made anew."""
    if not (folder / EVALUATION).exists():
        return None
    try:
        return Evaluation(**read_object(folder / EVALUATION), folder=str(folder))
    except (RunDirectoryError, TypeError):
        return None


def _summarise(run: RunContext, named: str, text: str, outcomes: Sequence[Outcome]) -> Evaluation:
    table = by_kind(outcomes)
    for kind, members in grouped(outcomes).items():
        table[kind]["interval"] = hard_interval(members)
    overall = table["overall"]
    return Evaluation(
        skill=named,
        skill_hash=skill_hash(text),
        split=run.evaluates,
        folder=str(run.directory.root),
        n_items=overall["total"],
        n_scored=overall["scored"],
        hard=overall["hard_acc"],
        soft=overall["soft"],
        interval=overall["interval"],
        by_kind=table,
        token_summary=token_summary(run.models.ledger),
    )
