"""A series: runs of one configuration that differ in the seed alone, and what they say together."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import ModelError, RunDirectoryError, SkillOptError, StoppedEarly
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.api import Source, loaded_config, train
from skillopt_kernel.loop.preparing import prepare
from skillopt_kernel.store.directory import FINGERPRINT, FINISHED, RunDirectory, free_place
from skillopt_kernel.store.files import read_object, write_json

from skillopt_commands.report import report_of
from skillopt_commands.student import student_interval

SEEDS_FILE = "seeds.json"
CONFIDENCE = 0.95
METHOD = "Student's t interval over seeds"

_RUN_FOLDER = re.compile(r"seed--?\d+")


@frozen(kw_only=True)
class SeedRun:
    """One run of a series. `folder` is relative to the series' folder; scores as in `RunSummary`.

    finished_before  the run had been finished by an earlier command and was not repeated
    """

    seed: int
    folder: str
    status: str
    best_step: int
    best_gate_score: float | None
    best_selection_hard: float | None
    baseline_test_hard: float | None
    test_hard: float | None
    final_test_hard: float | None
    test_delta_hard: float | None
    finished_before: bool


@frozen
class SeedMean:
    """A mean over `n` runs with its interval (`METHOD`), which one run does not have."""

    mean: float
    interval: tuple[float, float] | None
    n: int


@frozen(kw_only=True)
class SeedsSummary:
    """What `train_seeds` returns and `seeds.json` holds.

    status              "finished" when every seed's run is; else "unfinished"
    runs                the runs so far, in the order of `seeds`
    test_hard           of the best skill, over the runs that have it; test_delta_hard: its gain over the first skill
    best_by_selection   the seed whose best skill has the highest gate score on the selection tasks (the first of
                        equal ones), never chosen by a test score
    """

    status: str
    folder: str
    seeds: tuple[int, ...]
    runs: tuple[SeedRun, ...]
    method: str = METHOD
    confidence: float = CONFIDENCE
    test_hard: SeedMean | None = None
    test_delta_hard: SeedMean | None = None
    best_by_selection: int | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What `seeds.json` holds: all but where the folder lies and which runs this command found finished."""
        value = attrs.asdict(self)
        for part, name in ((value, "folder"), *((run, "finished_before") for run in value["runs"])):
            del part[name]
        return value


def train_seeds(
    config: Source,
    seeds: int | str | Sequence[int],
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    plugins: Sequence[tuple[str, Any]] = (),
    stop: threading.Event | None = None,
) -> SeedsSummary:
    """Train once for each seed, one run after another, and return what the runs say together.

    seeds   how many (from `train.seed` on), or the seeds themselves; as text "3" or "1,5,9"
    out     the folder of the series; default: `env.out_root`, else outputs/<name>-seeds-<8 hex of the fingerprint>.
            Each run has a folder `seed-0042` in it, and `seeds.json` is written anew after each
    fresh   begin a series beside an earlier one. Without it the series goes on: a finished run is not repeated

    The other arguments are those of `train`. A run that fails ends the series, and so does one whose final test has
    no score at all; what is done is kept.
    """
    loaded = loaded_config(config, overrides)
    asked = read_seeds(seeds, loaded.train.seed)
    root = _series_folder(loaded, out, plugins, fresh=fresh)
    stop = stop or threading.Event()
    runs: list[SeedRun] = []
    for seed in asked:
        place = root / f"seed-{seed:04d}"
        try:
            if stop.is_set():
                raise StoppedEarly("the series was asked to stop.")
            of_seed = loaded.with_overrides({"train.seed": seed}, origin="--seeds")
            trained = train(of_seed, out=place, plugins=plugins, stop=stop)
            report_of(trained)
            runs.append(_seed_run(seed, trained))
        except (SkillOptError, ModelError) as error:
            if runs or place.exists():
                error.add_note(
                    f"Seed {seed} is not finished. Finished and kept in {root}: {len(runs)} of {len(asked)} seeds. Run "
                    f"the same command again to go on."
                )
            raise
        summary = summarise_seeds(root, asked, runs, loaded)
        write_json(root / SEEDS_FILE, summary.as_json())
        if runs[-1].status != FINISHED:
            break
    return summary


def read_seeds(seeds: int | str | Sequence[int], first: int) -> tuple[int, ...]:
    """The seeds that are meant: a number of seeds from `first` on, or a list. Raises `SkillOptError`."""
    problem = "give the number of runs, 1 or more, as in 3, or the seeds themselves, as in 1,5,9 (one alone: 7,)."
    if isinstance(seeds, str):
        words = [word.strip() for word in seeds.split(",")]
        if len(words) > 1 and not words[-1]:
            words.pop()  # a list of one is written with a comma
        if not all(re.fullmatch(r"-?[0-9]+", word) for word in words):
            raise SkillOptError(f"--seeds is {seeds!r}: {problem}")
        numbers = [int(word) for word in words]
        seeds = numbers if "," in seeds else numbers[0]
    if isinstance(seeds, int):
        if isinstance(seeds, bool) or seeds < 1:
            raise SkillOptError(f"--seeds is {seeds}: {problem}")
        return tuple(range(first, first + seeds))
    if not seeds or not all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds):
        raise SkillOptError(f"--seeds is {list(seeds)!r}: {problem}")
    if twice := sorted({seed for seed in seeds if list(seeds).count(seed) > 1}):
        raise SkillOptError(f"--seeds names {', '.join(map(str, twice))} more than once: give each seed once.")
    return tuple(seeds)


def _series_folder(config: Config, out: str | Path | None, plugins: Sequence[tuple[str, Any]], *, fresh: bool) -> Path:
    """Where the series lies. Its name does not depend on the seeds, so that a longer series goes on with a shorter."""
    chosen = out if out is not None else config.env.out_root
    if chosen is None:
        fingerprint = prepare(config, plugins).fingerprint
        train_keys = {key: value for key, value in fingerprint["train"].items() if key != "seed"}
        chosen = Path("outputs") / RunDirectory.default_name(
            f"{config.name}-seeds", fingerprint | {"train": train_keys}
        )
    root = free_place(Path(chosen)) if fresh else Path(chosen)
    if root.exists() and not root.is_dir():
        raise RunDirectoryError(f"{root} is a file, not a folder; choose another folder for the series (--out).")
    if (root / FINGERPRINT).exists():
        raise RunDirectoryError(
            f"{root} holds a single run, not a series of seeds; choose another folder (--out), or begin beside it with "
            f"--fresh."
        )
    names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    strange = [name for name in names if not (name == SEEDS_FILE or name.endswith(".tmp") or _RUN_FOLDER.match(name))]
    if strange:
        raise RunDirectoryError(
            f"{root} is not empty and no series of seeds (it holds {', '.join(strange[:3])}); choose another folder "
            f"(--out)."
        )
    return root


def _seed_run(seed: int, summary: RunSummary) -> SeedRun:
    told: dict[str, Any] = {
        field.name: getattr(summary, field.name) for field in attrs.fields(SeedRun) if hasattr(summary, field.name)
    }
    told |= {"folder": Path(summary.folder).name, "finished_before": summary.already_finished}
    return SeedRun(seed=seed, **told)


def summarise_seeds(root: Path, seeds: Sequence[int], runs: Sequence[SeedRun], config: Config) -> SeedsSummary:
    """The means over the runs so far, and the run to take."""
    finished = len(runs) == len(seeds) and all(run.status == FINISHED for run in runs)
    ranked = [run for run in runs if run.best_gate_score is not None]
    best = max(ranked, key=lambda run: run.best_gate_score or 0.0, default=None)
    return SeedsSummary(
        status=FINISHED if finished else "unfinished",
        folder=str(root),
        seeds=tuple(seeds),
        runs=tuple(runs),
        test_hard=_mean([run.test_hard for run in runs], 0.0),
        test_delta_hard=_mean([run.test_delta_hard for run in runs], -1.0),
        best_by_selection=None if best is None else best.seed,
        notes=tuple(_notes(root, seeds, runs, config)),
    )


def _mean(values: Sequence[float | None], least: float) -> SeedMean | None:
    """The mean of what is known, its interval cut to what is possible: `least`..1."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    found = student_interval(known, confidence=CONFIDENCE)
    if found is None:
        return SeedMean(known[0], None, 1)
    return SeedMean(found.estimate, (max(least, found.low), min(1.0, found.high)), found.count)


def _notes(root: Path, seeds: Sequence[int], runs: Sequence[SeedRun], config: Config) -> list[str]:
    """What a reader must know to read the numbers right."""
    data = {_fingerprint(root / run.folder).get("data") for run in runs}
    by_ratio = config.env.split_mode == "ratio"
    decided = f"env.split_seed ({config.env.split_seed})" if by_ratio else "env.split_dir"
    notes = [
        f"every run has the same tasks in the same splits: {decided} decides them, not train.seed."
        if len(data) == 1
        else "the runs do not have the same tasks: this environment draws its tasks by train.seed."
    ]
    if len(runs) < len(seeds):
        notes.append(f"not run yet: {len(seeds) - len(runs)} of {len(seeds)} seeds.")
    for run in runs:
        if run.status != FINISHED:
            notes.append(
                f"the test of seed {run.seed} is {run.status}: run the same command again, and what has no score is "
                f"asked again."
            )
    untested = [run.seed for run in runs if run.test_hard is None]
    if untested:
        notes.append(f"no test score, so in no mean: seed {', '.join(map(str, untested))}.")
    if len(runs) - len(untested) == 1:
        notes.append("one run has no interval: the spread over seeds cannot be seen.")
    top = max((run.best_gate_score for run in runs if run.best_gate_score is not None), default=None)
    tied = [str(run.seed) for run in runs if top is not None and run.best_gate_score == top]
    if len(tied) > 1:
        notes.append(f"seeds {', '.join(tied)} have the same best selection score; the first of them is named.")
    return notes


def _fingerprint(folder: Path) -> Mapping[str, Any]:
    return read_object(folder / FINGERPRINT)
