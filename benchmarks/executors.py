"""Attempts that need a CPU: worker processes beside threads, and what a worker costs to start.

Each attempt computes for about 40 ms with Python's lock held, then asks the target over loopback HTTP, where a reply
takes 20 ms. Both executors evaluate the same tasks with the same skill, in turn, so that a busy moment strikes both.

python benchmarks/executors.py            prints a table
python benchmarks/executors.py --write    also writes benchmarks/results/executors.md
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

from attrs import evolve
from reporting import tell
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.execution import AttemptResult
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.worker import Workplace
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_testkit.conformance.executor import Calls, job
from skillopt_testkit.project import Project
from skillopt_testkit.rehearsal.environment import RehearsalEnvironment, RehearsalSettings, work
from skillopt_testkit.servers import ChatServer, Reply

TASKS, WORKERS, TURNS, STARTS = 200, 4, 3, 5
ATTEMPT_SECONDS, REPLY_SECONDS = 0.04, 0.02


BARE = "found = 1\nfor number in range(5_000_000): found = (found * 1103515245 + number) % 2147483647"
"""The same arithmetic without anything else, about a second of it."""


def rounds_for(seconds: float) -> int:
    """How many rounds of the environment's arithmetic take so long here, when nothing else disturbs them."""
    times = []
    for _ in range(5):
        began = time.thread_time()
        work(100_000)
        times.append(time.thread_time() - began)
    return int(100_000 * seconds / min(times))


def project_in(folder: Path, server: ChatServer, rounds: int) -> Project:
    project = Project(folder, {"OPENAI_COMPATIBLE_API_KEY": "none-needed"})
    for split, count in (("train", 1), ("val", TASKS), ("test", 0)):
        items = [{"id": f"{split}{n}", "question": "Two and two?", "answer": "four"} for n in range(count)]
        project.write(f"data/{split}/items.json", json.dumps(items))
    project.write("skill.md", "# Be brief\n")
    model = {"backend": "openai_compatible", "openai_compatible_base_url": server.url, "optimizer": "o", "target": "t"}
    env = {"name": "rehearsal", "split_mode": "split_dir", "split_dir": "data", "workers": WORKERS, "rounds": rounds}
    sections = {"_base_": "package:skillopt_kernel/default.yaml", "env": env, "model": model}
    project.write("config.yaml", json.dumps(sections))
    return project


def seconds_of(project: Project, isolation: str, out: str) -> float:
    """From the first event of an evaluation to its last. Workers are started within."""
    told = ("config.yaml", "--skill", "skill.md", "--split", "val", "--out", out, "-o", f"env.isolation={isolation}")
    project.run("eval", *told, timeout=600).ok()
    assert project.json(f"{out}/eval_summary.json")["hard"] == 1.0
    lines = project.lines(f"{out}/outcomes.jsonl")
    assert len(lines) == TASKS
    times = [datetime.fromisoformat(event["time"]).timestamp() for event in project.lines(f"{out}/events.jsonl")]
    return times[-1] - times[0]


def bare_ratio() -> float:
    """How much faster two bare processes compute than one after the other: what the machine had to give just then."""
    command = [sys.executable, "-S", "-c", BARE]

    def seconds(at_once: int) -> float:
        began = time.perf_counter()
        for _ in range(2 // at_once):
            for process in [subprocess.Popen(command) for _ in range(at_once)]:
                process.wait()
        return time.perf_counter() - began

    return seconds(1) / seconds(2)


def start_seconds() -> list[float]:
    """How long the first job of a worker takes beyond its second: interpreter, imports and environment."""
    common = EnvSettings(name="rehearsal", workers=1)
    context = DriverContext(logging.getLogger("benchmark"), common=common)
    settings = RehearsalSettings()
    place = Workplace(RehearsalEnvironment(settings, context), "rehearsal", settings, common, threading.Event())
    found = []
    for _ in range(STARTS):
        executor = make_driver("executor", "processes", None, evolve(context, common=place))
        arrived: queue.SimpleQueue[AttemptResult] = queue.SimpleQueue()
        times = []
        for number in range(2):
            began = time.perf_counter()
            executor.submit(job(f"t{number}"), Calls().given, arrived.put)
            assert arrived.get(timeout=60).score is not None
            times.append(time.perf_counter() - began)
        executor.close()
        found.append(times[0] - times[1])
    return found


def measure() -> str:
    rounds = rounds_for(ATTEMPT_SECONDS)
    times: dict[str, list[float]] = {"thread": [], "process": []}
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as folder, ChatServer(lambda _: Reply("four", delay=REPLY_SECONDS)) as server:
        project = project_in(Path(folder), server, rounds)
        for turn in range(TURNS):
            bare.append(bare_ratio())
            for isolation, taken in times.items():
                taken.append(seconds_of(project, isolation, f"{isolation}-{turn}"))
    threads, processes = (statistics.median(times[isolation]) for isolation in ("thread", "process"))
    ratios = [thread / process for thread, process in zip(times["thread"], times["process"], strict=True)]
    starts = start_seconds()
    return "\n".join(
        [
            f"| {TASKS} attempts, {WORKERS} workers | median of {TURNS}, s | attempts a second | of threads |",
            "|---|---:|---:|---:|",
            f"| threads | {threads:.1f} | {TASKS / threads:.0f} | 1.00 |",
            f"| processes | {processes:.1f} | {TASKS / processes:.0f} | {statistics.median(ratios):.2f} |",
            "",
            f"A worker process starts in {1000 * statistics.median(starts):.0f} ms (median of {STARTS}; the best "
            f"{1000 * min(starts):.0f} ms).",
            f"Single turns: {listed(ratios)}, the start of the workers within. What the machine had to give: two bare "
            f"processes were {listed(bare)} times as fast as one, just before each turn.",
            "",
            f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} CPUs, shared with others: "
            f"load {os.getloadavg()[0]:.1f} at the end.",
        ]
    )


def listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/executors.md")
    arguments = parser.parse_args()
    table = measure()
    tell("Attempts that need a CPU", "executors", table, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
