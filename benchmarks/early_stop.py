"""What the early stop of the gate saves where it can show itself, and whether it decides as asking everything does.

A simulated world of twelve kinds of questions, each answered by a rule of its own; the start skill has nine of the
twelve, and the optimizer proposes useless and harmful rules, too. The same training runs twice for each seed. The first
run counts the attempts that its gates began. The second asks each gate once more with everything to be asked, and
compares the two decisions; its course is the first run's, since the early decision is the one that counts.

python benchmarks/early_stop.py            prints a table
python benchmarks/early_stop.py --write    also writes benchmarks/results/early_stop.md
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from reporting import tell
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.loop.run import RunContext, RunTrial
from skillopt_testkit.project import Project

from skillopt_core import Applied, GateDecision, Scored, train

KINDS, KNOWN = 12, 9
SIZES = {"train": 80, "val": 200, "test": 0}
SEEDS = (1, 2, 3)
GATES: dict[str, dict[str, Any]] = {"hard": {}, "mixed": {"gate_metric": "mixed"}}


def name(number: int) -> str:
    return f"kind-{number:02d}"


def rule(number: int) -> str:
    return f"For {name(number)} give the name that stands before the mark."


def project_in(folder: Path, gate: str, seed: int) -> Project:
    """The world's data and configuration; the kinds of a split's questions are drawn from the seed."""
    rng, project, count = random.Random(seed), Project(folder), 0
    for split, size in SIZES.items():
        items = []
        for _ in range(size):
            count, kind = count + 1, name(rng.randrange(KINDS))
            question = f"[{kind}] Whose mark is number {count}?"
            items.append({"id": f"q{count:04d}", "question": question, "context": "", "answers": [f"Name {count}"]})
        project.write(f"data/{split}/items.json", json.dumps(items))
    kinds = {
        name(n): {"marker": f"[{name(n)}]", "needs": [f"rule-{n}"], "right_without": 0.15, "right_with": 0.97}
        for n in range(KINDS)
    }
    rules: dict[str, Any] = {f"rule-{n}": {"sentence": rule(n)} for n in range(KINDS)}
    rules |= {f"harm-{n}": {"sentence": f"Guess {name(n)}.", "harms": {name(n): 0.9}} for n in range(0, KINDS, 2)}
    rules |= {f"idle-{n}": {"sentence": f"Read the question {n} times."} for n in range(2, 6)}
    world = {
        "seed": seed, "data": ["data/*/items.json"], "kinds": kinds, "rules": rules,
        "target": {"latency": 0.05}, "optimizer": {"insight": 0.7, "harmful": 0.25, "distractors": 0.3},
    }  # fmt: skip
    project.write("world.yaml", json.dumps(world))
    project.write("skill.md", "# Answering\n\n" + "".join(f"- {rule(n)}\n" for n in range(KNOWN)))
    sections = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 2, "batch_size": 20, "seed": seed},
        "evaluation": {"eval_test": False, **GATES[gate]},
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "skill_init": "skill.md",
                "workers": 8},
        "model": {"optimizer_backend": "simulated", "target_backend": "simulated", "simulated_world": "world.yaml"},
    }  # fmt: skip
    project.write("config.yaml", json.dumps(sections))
    return project


@attrs.define
class AskedTwice:
    """The gate stage, which asks the gate again with everything to be asked; `differing` holds what it found."""

    compared: int = 0
    differing: list[str] = attrs.field(factory=list)

    @hookimpl
    def skillopt_gate(self, run: RunContext, applied: Applied, current: Scored, best: Scored) -> GateDecision:
        early = run.judge(applied, current, best)
        coverage = run.settings.evaluation.min_coverage
        candidate = Scored(applied.candidate, "again")
        full = run.gate.judge(RunTrial(run, candidate, current, best, run.splits.selection, False, coverage))
        self.compared += 1
        if (early.action, early.skill) != (full.action, full.skill):
            self.differing.append(f"{early.action} ({early.reason}), in full {full.action} ({full.reason})")
        return early


def gates_of(run: Path) -> list[int]:
    """How many attempts each gate began, those at the epochs' ends included."""
    rows = "SELECT count(*) FROM calls WHERE stage = 'selection' AND epoch IS NOT NULL GROUP BY epoch, step"
    with closing(sqlite3.connect(run / "calls.sqlite")) as ledger:
        return [int(count) for (count,) in ledger.execute(rows)]


def measure(gate: str, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        project, twice = project_in(Path(folder), gate, seed), AskedTwice()
        config = project.folder / "config.yaml"
        train(config, out=project.folder / "run")
        train(config, out=project.folder / "again", plugins=[("asked_twice", twice)])
        actions = [[step["action"] for step in project.json(f"{out}/history.json")] for out in ("run", "again")]
        begun = gates_of(project.folder / "run")
    same = actions[0] == actions[1] and not twice.differing
    return {"begun": begun, "compared": twice.compared, "same": same}


def share(begun: Sequence[int]) -> str:
    """The attempts that gates began, of those that asking everything takes."""
    return f"{sum(begun) / (len(begun) * SIZES['val']):.0%}" if begun else "-"


def table() -> tuple[str, bool]:
    """The table, and whether every decision was the full evaluation's."""
    size = SIZES["val"]
    lines = [
        "| gate | seed | gates | attempts begun | of full evaluation | stopped | of full evaluation | decisions |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    all_begun, same = list[int](), True
    for gate in GATES:
        for seed in SEEDS:
            found = measure(gate, seed)
            begun, same = found["begun"], same and found["same"]
            all_begun += begun
            stopped = [count for count in begun if count < size]
            verdict = f"{found['compared']} compared, {'the same' if found['same'] else 'DIFFERENT'}"
            row = (gate, seed, len(begun), sum(begun), share(begun), len(stopped), share(stopped), verdict)
            lines.append(f"| {' | '.join(map(str, row))} |")
    stopped = [count for count in all_begun if count < size]
    lines += [
        "",
        f"Together {share(all_begun)} of what full evaluation asks, and {share(stopped)} in the {len(stopped)} of "
        f"{len(all_begun)} gates that stopped: {size} selection tasks, 8 workers, a start skill with {KNOWN} of "
        f"{KINDS} rules, {SIZES['train']} training tasks in 2 epochs of 4 steps. What is accepted is asked everything.",
        "",
        f"Python {platform.python_version()}, {platform.system()}; latencies of 50 ms on average are simulated.",
    ]
    return "\n".join(lines), same


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/early_stop.md")
    arguments = parser.parse_args()
    text, same = table()
    tell("The early stop of the gate", "early_stop", text, write=arguments.write)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
