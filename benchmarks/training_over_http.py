"""A whole training against a simulated world over loopback HTTP, for 10^2, 10^3 and 10^4 tasks: time, calls, memory.

python benchmarks/training_over_http.py                                  prints a table
python benchmarks/training_over_http.py --write                          also writes benchmarks/results/
python benchmarks/training_over_http.py --tasks 100 --latency-target 0 --latency-optimizer 0

A fifth of the tasks are for training, a fifth for selection, the rest for the test. Each training is a process of its
own, and so is the server. Two epochs of four steps, 24 workers, nothing switched off.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from measured_training import in_own_process, write_config
from reporting import machine, tell
from simulated_server import reset, serving, stats
from simulated_world import write_data

TOPICS = 12
MOST_MEMORY, MOST_SLOWER = 500.0, 1.3


def sizes(tasks: int) -> dict[str, int]:
    return {"train": tasks // 5, "val": tasks // 5, "test": tasks - 2 * (tasks // 5)}


def one_size(tasks: int, target: float, optimizer: float) -> dict[str, float]:
    """What one training took; `attempts` is how many outcomes it committed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder / "data", TOPICS, sizes(tasks))
        with serving(folder / "data", target, optimizer) as url:
            config = write_config(folder, url, {"train": {"num_epochs": 2, "batch_size": max(1, tasks // 20)}})
            taken = in_own_process("train", config, folder / "run")
            asked = stats(url)
            reset(url)
        events = (folder / "run" / "events.jsonl").read_text(encoding="utf-8").splitlines()
        attempts = sum(json.loads(line)["event"] == "attempt_finished" for line in events)
    tokens = sum(asked.get(f"{role}_{kind}_tokens", 0) for role in ("target", "optimizer") for kind in
                 ("prompt", "completion"))  # fmt: skip
    busy = asked["busy_s"] / asked["span_s"] if asked["span_s"] else 0.0
    return {**taken, "tasks": tasks, "attempts": attempts, "tokens": tokens, "at_once": busy}


def table(rows: list[dict[str, float]], target: float, optimizer: float) -> str:
    first = rows[0]["seconds"] / rows[0]["attempts"]
    heads = ("tasks", "wall, s", "calls", "tokens", "calls at once", "CPU a call, ms", "peak memory, MB",
             "an attempt, ms", "of the first")  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---:" * len(heads) + "|"]
    for row in rows:
        each = row["seconds"] / row["attempts"]
        cells = (
            f"{row['tasks']:,}", f"{row['seconds']:.1f}", f"{row['calls']:,}", f"{row['tokens']:,}",
            f"{row['at_once']:.1f}", f"{1000 * row['cpu'] / row['calls']:.2f}", f"{row['peak_mb']:.0f}",
            f"{1000 * each:.2f}", f"{each / first:.2f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    told = f"Latencies: target {target:g} s, optimizer {optimizer:g} s in the mean, lognormal."
    goal = f"Wanted of the last: memory under {MOST_MEMORY:.0f} MB, time an attempt at most {MOST_SLOWER} of the first."
    return "\n".join([*lines, "", told, goal, machine()])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1_000, 10_000], help="sizes of the world")
    parser.add_argument("--latency-target", type=float, default=0.05, help="mean seconds of the target's replies")
    parser.add_argument("--latency-optimizer", type=float, default=0.2, help="mean seconds of the optimizer's replies")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/training_over_http.md")
    chosen = parser.parse_args()
    if min(chosen.tasks) < 20:
        parser.error("a world has at least 20 tasks")
    latencies = (chosen.latency_target, chosen.latency_optimizer)
    rows = [one_size(tasks, *latencies) for tasks in chosen.tasks]
    tell("A whole training over HTTP", "training_over_http", table(rows, *latencies), write=chosen.write)
    slower = rows[-1]["seconds"] / rows[-1]["attempts"] / (rows[0]["seconds"] / rows[0]["attempts"])
    return 0 if slower <= MOST_SLOWER and rows[-1]["peak_mb"] < MOST_MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
