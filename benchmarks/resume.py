"""How long a run with a long history takes until it goes on: 64 MB of events and 10^4 outcomes, beside a short one.

python benchmarks/resume.py            prints a table
python benchmarks/resume.py --write    also writes benchmarks/results/resume.md

A training is stopped after its first step. Its log is made long with its own events, counted on, and its journal with
its own outcomes under other tasks' names. Measured is, in a process that has loaded everything, from the call of
`train` until the run says that it has started; then it is stopped again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from measured_training import write_config
from reporting import machine, tell
from simulated_world import RIGHT, rule, write_data
from skillopt_kernel import StoppedEarly, hookimpl, train

LIMIT = 2.0
WORLD = f"""\
data: ["data/*/items.json"]
kinds: {{all: {{marker: "[topic", needs: [keep], right_without: {RIGHT["plain"]}, right_with: {RIGHT["ruled"]}}}}}
rules: {{keep: {{sentence: "{rule("00")}."}}}}
"""
SIMULATED = {"optimizer_backend": "simulated", "target_backend": "simulated", "simulated_world": "world.yaml"}


class Watch:
    """Notes when the run says that it has started, and stops it at the event that it was made for."""

    def __init__(self, stop_at: str) -> None:
        self.stop, self.stop_at, self.started = threading.Event(), stop_at, 0.0

    @hookimpl
    def skillopt_run_started(self, event: Any) -> None:
        self.started = time.perf_counter()
        self._told(event)

    @hookimpl
    def skillopt_step_finished(self, event: Any) -> None:
        self._told(event)

    def _told(self, event: Any) -> None:
        if event.name == self.stop_at:
            self.stop.set()


def run_until(config: Path, out: Path, event: str) -> float:
    """Train until an event, and return the seconds until the run had started."""
    watch, began = Watch(event), time.perf_counter()
    try:
        train(str(config), out=out, plugins=[("watch", watch)], stop=watch.stop)
    except StoppedEarly:
        return watch.started - began
    raise SystemExit("the training came to its end before it could be stopped")


def lengthen(run: Path, size: int, outcomes: int) -> None:
    """Append to the log until it has `size` bytes, and to the journal until it has so many outcomes."""
    log, journal = run / "events.jsonl", run / "outcomes.jsonl"
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    number, written = events[-1]["seq"], log.stat().st_size
    with log.open("ab") as handle:
        while written < size:
            number += 1
            written += handle.write(json.dumps(events[number % len(events)] | {"seq": number}).encode() + b"\n")
    rows = [json.loads(line) for line in journal.read_bytes().splitlines()]
    with journal.open("ab") as handle:
        for at in range(len(rows), outcomes):
            row = rows[at % len(rows)] | {"id": f"further-{at}"}
            row["folder"] = f"{row['folder']}-further-{at}"
            handle.write(json.dumps(row).encode() + b"\n")


def measured(repeats: int, size: int, outcomes: int) -> dict[str, float]:
    """Seconds until the run goes on: the median with a short history and with a long one; `mb` of its log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder / "data", 1, {"train": 24, "val": 12, "test": 12})
        config = write_config(folder, "", {"train": {"num_epochs": 2, "batch_size": 6}})
        settings = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps(settings | {"model": SIMULATED}), encoding="utf-8")
        (folder / "world.yaml").write_text(WORLD, encoding="utf-8")
        run_until(config, folder / "run", "step_finished")
        seconds = {}
        for history in ("short", "long"):
            if history == "long":
                lengthen(folder / "run", size, outcomes)
            taken = [run_until(config, folder / "run", "run_started") for _ in range(repeats)]
            seconds[history] = statistics.median(taken)
        return {**seconds, "mb": (folder / "run" / "events.jsonl").stat().st_size / 2**20}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=64, help="size of the log, in 2^20 bytes")
    parser.add_argument("--outcomes", type=int, default=10_000, help="outcomes in the journal")
    parser.add_argument("--repeats", type=int, default=5, help="resumes of each")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/resume.md")
    chosen = parser.parse_args()
    found = measured(chosen.repeats, chosen.megabytes * 2**20, chosen.outcomes)
    text = "\n".join(
        [
            "| history | until the run goes on, s |",
            "|---|---:|",
            f"| one step | {found['short']:.2f} |",
            f"| {found['mb']:.0f} MB of events, {chosen.outcomes:,} outcomes | {found['long']:.2f} |",
            "",
            f"Medians of {chosen.repeats}; limit of the second: {LIMIT:.0f} s. {machine()}",
        ]
    )
    tell("Resuming a run with a long history", "resume", text, write=chosen.write)
    return 0 if found["long"] < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
