"""How long a finished run had to take: its recorded model calls, scheduled anew without any overhead.

The calls come from calls.sqlite, how far each gate had to ask from history.json and the files of the epochs' ends. They
are put into the order that training asks for: a step's analysts after its rollout, the merges level by level after
these, then whatever else the optimizer is asked, the gate, and the next step; the baseline before the first gate; the
optimizer's calls at an epoch's end after its comparison; best and last skill are tested at the end, and the start skill
whenever there is a place. An attempt takes as long as its calls together; attempts share the run's workers and begin in
the order of their need, then as they began. A gate that stopped early waits only for the tasks that it decided by.

Two numbers are shown. "No waiting for workers" is the longest chain of calls that depend on each other. "With N
workers" is the schedule on the workers that the run had: what a trainer could reach that costs no time of its own.

python benchmarks/critical_path.py RUN            prints a table; RUN is the folder of a finished run
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from attrs import define, field, frozen

TESTS_BEHIND = 2
"""Rank of the start skill's test; rollout and gate have 0, the baseline 1."""


NEEDED = ("config.json", "summary.json", "history.json", "events.jsonl", "calls.sqlite")
"""What a finished run has, and is read here."""


class Call(NamedTuple):
    """One row of calls.sqlite, as far as it is needed here."""

    number: int
    role: str
    stage: str
    scope: str
    epoch: int | None
    step: int | None
    seconds: float
    started: str


@frozen
class Job:
    """Calls of one scope, which are made one after another: an attempt, or one question to the optimizer."""

    seconds: float
    began: str


@define
class Group:
    """Jobs that may run at the same time, once all groups named in `after` are done.

    needed  it is done when its first so many jobs are; `None`: all
    pool    "workers", or "optimizer", whose calls wait for no worker
    """

    name: str
    jobs: Sequence[Job]
    after: Sequence[str] = ()
    needed: int | None = None
    rank: int = 0
    pool: str = "workers"
    done_at: float = field(default=-1.0, init=False)


def schedule(groups: Sequence[Group], workers: float) -> float:
    """Seconds until all groups are done, by list scheduling; sets `done_at` of each.

    Of the jobs that may run, those of the lowest rank begin first, then those of the earlier group, in their order.
    """
    missing = {group.name: group.needed if group.needed is not None else len(group.jobs) for group in groups}
    done: set[str] = set()
    waiting, ready = list(groups), list[tuple[int, int, int, Group]]()
    running: list[tuple[float, int, Group, int]] = []
    numbers, now, busy = count(), 0.0, 0
    while True:
        progress = True
        while progress:
            progress = False
            for group in [one for one in waiting if done.issuperset(one.after)]:
                waiting.remove(group)
                place = next(numbers)
                for at in range(len(group.jobs)):
                    heapq.heappush(ready, (group.rank, place, at, group))
            for group in groups:
                if group not in waiting and missing[group.name] <= 0 and group.name not in done:
                    done.add(group.name)
                    group.done_at, progress = now, True
        held = []
        while ready and (busy < workers or any(entry[3].pool == "optimizer" for entry in ready)):
            entry = heapq.heappop(ready)
            group, at = entry[3], entry[2]
            if group.pool == "workers" and busy >= workers:
                held.append(entry)
                continue
            busy += group.pool == "workers"
            heapq.heappush(running, (now + group.jobs[at].seconds, next(numbers), group, at))
        for entry in held:
            heapq.heappush(ready, entry)
        if len(done) == len(groups):
            return now
        now, _, group, at = heapq.heappop(running)
        busy -= group.pool == "workers"
        if group.needed is None or at < group.needed:
            missing[group.name] -= 1


# The groups of a run --------------------------------------------------------------------------------------


def read_calls(run: Path) -> list[Call]:
    with closing(sqlite3.connect(f"file:{run / 'calls.sqlite'}?mode=ro", uri=True)) as ledger:
        names = ", ".join(Call._fields)
        return [Call(*row) for row in ledger.execute(f"SELECT {names} FROM calls ORDER BY started, number")]


def jobs_of(calls: Iterable[Call]) -> list[Job]:
    """A job for each scope, in the order in which they began."""
    scopes: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        scopes[call.scope].append(call)
    return [Job(sum(call.seconds for call in made), made[0].started) for made in scopes.values()]


def attempts(calls: Iterable[Call], stage: str, epoch: int | None, step: int | None) -> list[Job]:
    """The attempts of one evaluation; a judge's calls belong to the attempt that they judge."""
    made = [call for call in calls if call.role != "optimizer" and (call.epoch, call.step) == (epoch, step)]
    scopes = {call.scope for call in made if call.stage == stage}
    return jobs_of(call for call in made if call.scope in scopes)


def optimizer_groups(calls: Iterable[Call], where: str, after: str) -> list[Group]:
    """The optimizer's calls of one step in the order of their stages, merges by level; each waits for those before."""
    layers: dict[str, list[Call]] = {}
    for call in calls:
        key = call.scope.rsplit("/", 1)[-1]
        level = f" {key.split('-')[1]}" if call.stage == "merge" and key.count("-") == 2 else ""
        layers.setdefault(call.stage + level, []).append(call)
    groups = []
    for layer, made in layers.items():
        groups.append(Group(f"{where} {layer}", jobs_of(made), [after], pool="optimizer"))
        after = groups[-1].name
    return groups


def groups_of(run: Path) -> list[Group]:
    calls = read_calls(run)
    history = json.loads((run / "history.json").read_text(encoding="utf-8"))
    of_optimizer = [call for call in calls if call.role == "optimizer"]
    baseline = [call for call in calls if (call.stage, call.epoch, call.step) == ("selection", None, None)]
    groups, ready = [Group("baseline", jobs_of(baseline), rank=1)], list[str]()
    for at, record in enumerate(history):
        step, epoch, name = record["step"], record["epoch"], f"step {record['step']}"
        groups.append(Group(f"{name} rollout", attempts(calls, "rollout", epoch, step), ready))
        asked = [call for call in of_optimizer if call.step == step]
        groups += optimizer_groups(asked, name, groups[-1].name)
        gate = attempts(calls, "selection", epoch, step)
        needed = min(record.get("selection_asked") or 0, len(gate))
        groups.append(Group(f"{name} gate", gate, [groups[-1].name, "baseline"], needed))
        ready = [groups[-1].name]
        if at + 1 == len(history) or history[at + 1]["epoch"] != epoch:
            groups += epoch_end(run, calls, epoch, ready)
            ready = [one.name for one in groups if one.name.startswith(f"epoch {epoch} ")] or ready
    return groups + tests(run, calls, ready)


def epoch_end(run: Path, calls: Sequence[Call], epoch: int, after: Sequence[str]) -> list[Group]:
    """Comparison, guidance with its gate, and beside them the advice."""
    name, groups = f"epoch {epoch}", list[Group]()
    if pairs := attempts(calls, "rollout", epoch, None):
        groups.append(Group(f"{name} comparison", pairs, after))
        after = [groups[-1].name]
    asked = [call for call in calls if call.role == "optimizer" and (call.epoch, call.step) == (epoch, None)]
    for stage in dict.fromkeys(call.stage for call in asked):
        made = jobs_of(call for call in asked if call.stage == stage)
        groups.append(Group(f"{name} {stage}", made, after, pool="optimizer"))
    if gate := attempts(calls, "selection", epoch, None):
        path = run / "slow_update" / f"epoch_{epoch:02d}" / "slow_result.json"
        told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        needed = min(told.get("selection_asked") or len(gate), len(gate))
        guidance = [one.name for one in groups if one.name.endswith("slow_update")] or after
        groups.append(Group(f"{name} gate", gate, guidance, needed))
    return groups


def tests(run: Path, calls: Sequence[Call], after: Sequence[str]) -> list[Group]:
    """The start skill's test waits for nothing, the others for the end of training."""
    with (run / "events.jsonl").open(encoding="utf-8") as lines:
        start = json.loads(next(lines))["skill_hash"]
    made = [call for call in calls if call.stage == "test"]
    scopes: Mapping[bool, list[Call]] = {True: [], False: []}
    for call in made:
        scopes[call.scope.startswith(start)].append(call)
    first = Group("test of the start skill", jobs_of(scopes[True]), rank=TESTS_BEHIND)
    return [first, Group("test of best and last skill", jobs_of(scopes[False]), after)]


# The table ------------------------------------------------------------------------------------------------


def kinds(groups: Sequence[Group]) -> dict[str, float]:
    """Seconds by kind of group, along the schedule: from when all that a group waits for was done until it was done."""
    done = {group.name: group.done_at for group in groups}
    found: dict[str, float] = defaultdict(float)
    for group in groups:
        began = max((done[name] for name in group.after), default=0.0)
        words = group.name.split()
        found[words[2] if words[0] in ("step", "epoch") else group.name] += group.done_at - began
    return dict(found)


def measure(run: Path) -> dict[str, Any]:
    """Wall time, calls, the two schedules in seconds, and where they go."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    workers, groups = config["env"]["workers"], groups_of(run)
    endless = schedule(groups, math.inf)
    bounded = schedule(groups, workers)
    calls, wall = len(read_calls(run)), summary["total_wall_time_s"]
    numbers = {"wall": wall, "calls": calls, "workers": workers, "chain": endless, "schedule": bounded}
    return {**numbers, "kinds": kinds(groups), "groups": groups}


def table(found: Mapping[str, Any]) -> str:
    lines = ["| | seconds | wall time of it |", "|---|---:|---:|"]
    named = (
        ("wall time of the run", "wall"),
        (f"schedule with {found['workers']} workers", "schedule"),
        ("no waiting for workers", "chain"),
    )
    lines += [f"| {name} | {found[key]:.1f} | {found['wall'] / found[key]:.2f} |" for name, key in named]
    lines += ["", f"{found['calls']:,} calls. Along the schedule, the two tests and the baseline beside the rest:", ""]
    return "\n".join(lines + [f"* {name}: {seconds:.1f} s" for name, seconds in found["kinds"].items()])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    run = parser.parse_args().run
    lacking = [name for name in NEEDED if not (run / name).exists()]
    if lacking:
        parser.error(
            f"{run} is not the folder of a finished run: it has no {lacking[0]}. Name one that has come to its end."
        )
    print(table(measure(run)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
