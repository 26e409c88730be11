"""Calls a second through the whole loop beside a bare loop over the same client, against a server that answers at once.

python benchmarks/throughput.py                       prints a table
python benchmarks/throughput.py --write               also writes benchmarks/results/throughput.md
python benchmarks/throughput.py --url URL --data DIR  against another server of the same protocol and its data

The bare loop asks what the training asked once more: the same bodies, 24 threads, `openai`, and nothing kept. Both are
processes of their own that have loaded and opened everything before they are measured; they take turns, so that a busy
moment strikes both, and what counts is the median of their ratios. The profile is of one more training: which parts of
it hold the interpreter while a worker's call is under way, counted by `cProfile` in one of the workers.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measured_training import WORKERS, in_own_process, write_config
from reporting import machine, tell
from simulated_server import serving
from simulated_world import write_data

GOAL = 0.8
SIZES = {"train": 400, "val": 300, "test": 600}
FOLDERS, SLOW_MS = 200, 0.2


@contextmanager
def world(folder: Path, sizes: dict[str, int], url: str, data: Path | None) -> Iterator[str]:
    """The data in `folder`, and the URL of what serves it."""
    if data is not None:
        shutil.copytree(data, folder / "data")
        yield url
        return
    write_data(folder / "data", 12, sizes)
    with serving(folder / "data") as own:
        yield own


def rounds_of(folder: Path, url: str, batch: int, rounds: int) -> list[tuple[dict[str, float], dict[str, float]]]:
    """What training and bare loop took, in turns."""
    config = write_config(folder, url, {"train": {"num_epochs": 2, "batch_size": batch}})
    taken = []
    for number in range(rounds):
        run = folder / f"run-{number}"
        taken.append((in_own_process("train", config, run), in_own_process("bare", run, url, WORKERS)))
    return taken


def profile_of(folder: Path) -> list[str]:
    """The rows of one worker's profile: what a share of its time each part takes, the waiting for work left out."""
    config = folder / "config.yaml"
    shares = in_own_process("profile", config, folder / "run-profile")
    return [f"| {part} | {share:.0%} |" for part, share in sorted(shares.items(), key=lambda each: -each[1])]


def folder_ms(place: Path) -> float:
    """Milliseconds of CPU for a folder of three files, as an attempt leaves them."""
    began = time.process_time()
    for number in range(FOLDERS):
        folder = place / "files" / str(number)
        folder.mkdir(parents=True)
        for name in "abc":
            (folder / name).write_bytes(b"x" * 2000)
    return 1000 * (time.process_time() - began) / FOLDERS


def table(
    rounds: list[tuple[dict[str, float], dict[str, float]]], profile: list[str], one_folder: float
) -> tuple[str, float]:
    """The report, and the median ratio."""
    ratios = [_rate(ours) / _rate(bare) for ours, bare in rounds]
    ratio = statistics.median(ratios)
    lines = [
        "| loop | calls a second | CPU a call, ms | of it in the system | waits a call |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {_middle([_rate(one) for one in side]):.0f} "
            f"| {_middle([1000 * one['cpu'] / one['calls'] for one in side]):.2f} "
            f"| {_middle([1000 * one['system'] / one['calls'] for one in side]):.2f} "
            f"| {_middle([one['waits'] / one['calls'] for one in side]):.1f} |"
            for name, side in zip(("whole", "bare"), zip(*rounds, strict=True), strict=True)
        ),
        "",
        f"The whole loop makes {ratio:.2f} of the bare one's calls a second (wanted: {GOAL}): the median of "
        f"{len(rounds)} turns, {min(ratios):.2f} to {max(ratios):.2f}, of {rounds[0][0]['calls']:,} calls each, "
        f"{WORKERS} threads.",
        f"A folder of three files took {one_folder:.2f} ms of CPU before it"
        f"{', which is slow: see the head of this benchmark' if one_folder > SLOW_MS else ''}.",
        machine(),
        "",
        "| part of a worker's time | share |",
        "|---|---:|",
        *profile,
    ]
    return "\n".join(lines), ratio


def _rate(one: dict[str, float]) -> float:
    return one["calls"] / one["seconds"]


def _middle(values: list[float]) -> float:
    return statistics.median(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of both")
    parser.add_argument(
        "--train", type=int, default=SIZES["train"], help="training tasks; the others are in proportion"
    )
    parser.add_argument("--batch", type=int, default=0, help="tasks of a step; 0: a quarter of the training tasks")
    parser.add_argument("--url", default="", help="base URL of another server; with --data")
    parser.add_argument("--data", type=Path, help="its data: <split>/items.json")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/throughput.md")
    chosen = parser.parse_args()
    if bool(chosen.url) != bool(chosen.data):
        parser.error("--url and --data belong together")
    sizes = {split: max(1, size * chosen.train // SIZES["train"]) for split, size in SIZES.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one_folder = folder_ms(folder)
        with world(folder, sizes, chosen.url, chosen.data) as url:
            rounds = rounds_of(folder, url, chosen.batch or max(1, chosen.train // 4), chosen.rounds)
            text, ratio = table(rounds, profile_of(folder), one_folder)
    tell("Calls a second without latency", "throughput", text, write=chosen.write)
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
