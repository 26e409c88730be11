"""Compares optimizers, and settings of the loop, on the demo's simulated world: final test scores over seeds.

python benchmarks/optimizers.py                  every case, 10 seeds
python benchmarks/optimizers.py --seeds 4 --epochs 1 --only default --only "no gate"

Each seed is another world (which questions are hard) and another run (batches, draws of the optimizer), and every
case sees the same ones, so the differences to the first case are paired. Nothing is called over a network.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen
from skillopt_analysis.paired import paired_bootstrap
from skillopt_kernel import train
from skillopt_kernel.statistics import Interval, bootstrap_interval


@frozen
class Case:
    """One way to train. quality: what differs in the world's optimizer; overrides: as `-o` takes them."""

    name: str
    quality: Mapping[str, float] = {}
    overrides: tuple[str, ...] = ()


GOOD = {"insight": 0.9, "harmful": 0.05, "distractors": 0.05, "bad_anchors": 0.0, "memory": 1.0, "ranking": 1.0}
POOR = {"insight": 0.15, "harmful": 0.7, "distractors": 0.7, "bad_anchors": 0.4, "memory": 0.0, "ranking": 0.2}

CASES = (
    Case("default"),
    Case("good optimizer", GOOD),
    Case("poor optimizer", POOR),
    Case("guesses ranks", {"ranking": 0.0}),
    Case("forgets", {"memory": 0.0}),
    Case("no gate", overrides=("evaluation.use_gate=false",)),
    Case("soft gate", overrides=("evaluation.gate_metric=soft",)),
    Case("1 edit a step", overrides=("optimizer.learning_rate=1", "optimizer.min_learning_rate=1")),
    Case("8 edits a step", overrides=("optimizer.learning_rate=8", "optimizer.min_learning_rate=8")),
    Case("batches of 5", overrides=("train.batch_size=5",)),
)


def run(case: Case, seed: int, epochs: int, folder: Path) -> tuple[float, float, float]:
    """Test scores of the start skill, the last one and the best one of one run."""
    place = folder / case.name.replace(" ", "_") / str(seed)
    world = world_of(case, place / "demo")
    summary = train(
        "demo",
        [
            f"model.simulated_world={world}",
            f"model.simulated_seed={seed}",
            f"env.split_dir={world.parent}",
            f"train.seed={seed}",
            f"train.num_epochs={epochs}",
            *case.overrides,
        ],
        out=place / "run",
    )
    first, last, best = summary.baseline_test_hard, summary.final_test_hard, summary.test_hard
    if first is None or last is None or best is None:
        raise SystemExit(f"{case.name}, seed {seed}: the run ended without test scores ({summary.status})")
    return first, last, best


def world_of(case: Case, folder: Path) -> Path:
    """A copy of the demo's data and world in which the case's qualities stand."""
    spec = importlib.util.find_spec("skillopt_env_searchqa")
    if spec is None or spec.origin is None:
        raise SystemExit("the demo is not installed: pip install skillopt-env-searchqa")
    shutil.copytree(Path(spec.origin).parent / "demo", folder)
    path = folder / "world.yaml"
    written: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    written["optimizer"] |= case.quality
    path.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    return path


def shown(interval: Interval | None, sign: str = "") -> str:
    if interval is None:
        return "-"
    return f"{interval.estimate:{sign}.3f}  {interval.low:{sign}.3f} to {interval.high:{sign}.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each case")
    parser.add_argument("--epochs", type=int, default=2, help="epochs of each run")
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="a case; repeatable")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    print(f"{options.seeds} seeds, {options.epochs} epochs; test accuracy, mean and 95% interval over seeds\n")
    print(f"{'case':<16}{'first':>7}{'last':>7}  {'best skill':<24}  difference to {cases[0].name!r}")
    first: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            scores = {str(seed): run(case, seed, options.epochs, Path(folder)) for seed in range(options.seeds)}
            final = {seed: best for seed, (_, _, best) in scores.items()}
            start, end = (sum(one[index] for one in scores.values()) / len(scores) for index in (0, 1))
            first = first or final
            versus = "" if case is cases[0] else shown(paired_bootstrap(first, final), "+")
            mean = shown(bootstrap_interval(list(final.values())))
            print(f"{case.name:<16}{start:>7.3f}{end:>7.3f}  {mean:<24}  {versus}")


if __name__ == "__main__":
    main()
