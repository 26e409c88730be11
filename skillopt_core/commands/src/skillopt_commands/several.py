"""Several configurations: one run each, one after another or side by side, under one budget and shared limits."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from attrs import field, frozen
from skillopt_kernel.cli.main import explained
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import BudgetSpent, ModelError, SkillOptError, StoppedEarly, told
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.api import open_directory, train_prepared
from skillopt_kernel.loop.budget import Budget
from skillopt_kernel.loop.preparing import Prepared, prepare
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.spending import token_summary
from skillopt_kernel.store.directory import FINISHED, RunDirectory
from skillopt_kernel.store.files import safe_name

from skillopt_commands.report import report_of

Observers = Callable[[str], Sequence[tuple[str, Any]]]
"""A configuration's label -> the hook plugins that observe its run."""

NOT_BEGUN, STOPPED, FAILED = "not begun", "stopped", "failed"


@frozen(kw_only=True)
class SeveralRun:
    """What became of one configuration.

    label     its name; with the name of its folder where several have that name
    status    as in `RunSummary`; else "stopped" (its state is saved), "failed", or "not begun"
    sentence  why it is not finished; "" when it is
    summary   of a run that came to its end; used: its calls and what they used, as `_total` of `token_summary`
    """

    label: str
    folder: str
    status: str
    sentence: str = ""
    exit_code: int = 0
    summary: RunSummary | None = None
    used: Mapping[str, Any] = field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        told = {name: getattr(self, name) for name in ("label", "folder", "status", "sentence", "exit_code")}
        return told | {"used": dict(self.used), "summary": None if self.summary is None else self.summary.as_json()}


@frozen
class _Ready:
    """A configuration that has been checked, and where its run lies."""

    label: str
    prepared: Prepared
    directory: RunDirectory


def train_several(
    configs: Sequence[Config],
    *,
    parallel: int = 1,
    out: Path | None = None,
    fresh: bool = False,
    observers: Observers = lambda _: (),
    stop: threading.Event | None = None,
) -> tuple[SeveralRun, ...]:
    """Train by each configuration and return what became of them, in their order.

    parallel   so many at the same time, as threads of this process: there they share the limit of each endpoint, which
               is the highest that one of them has, and the budget. So nothing is paid for that another has spent
    out        a folder in which each run has one of the configuration's name; else each run lies where `train` puts it
    fresh      begin beside earlier runs. Without it unfinished ones go on, and finished ones are left as they are
    stop       once set, what is in flight is finished and saved, and nothing more is begun

    Every configuration is checked before the first is begun: raises `SkillOptError` with a sentence for each that
    cannot be used, when two would share a folder, and when their sections `budget` differ. That section is shared: all
    runs together may use what it says. A run that fails stops no other.
    """
    stop = stop or threading.Event()
    ready = _checked(configs, out, fresh, observers)
    budget = _shared_budget(ready)
    limits = _shared_limits([one.prepared for one in ready])
    for one in ready:
        one.prepared.models.limits = limits
        budget.check({role: one.prepared.models.sample(role) for role in ("target", "optimizer")})
        budget.count(one.directory.root)  # what was used before counts, also of those whose turn is late

    with ThreadPoolExecutor(max_workers=max(1, parallel), thread_name_prefix="skillopt-run") as pool:
        runs = [pool.submit(_run, one, stop, budget) for one in ready]
        try:
            while wait(runs, timeout=0.5).not_done:  # short waits, so that a signal is handled on every system
                continue
        except BaseException:
            stop.set()
            raise
    return tuple(run.result() for run in runs)


def _checked(configs: Sequence[Config], out: Path | None, fresh: bool, observers: Observers) -> list[_Ready]:
    names = Counter(config.name for config in configs)
    ready: list[_Ready] = []
    problems: list[str] = []
    for at, config in enumerate(configs):
        label = config.name if names[config.name] == 1 else f"{config.name} ({at + 1})"
        try:
            prepared = prepare(config, observers(label))
            place = out / safe_name(config.name) if out is not None else None
            ready.append(_Ready(label, prepared, open_directory(prepared, place, fresh=fresh)))
        except (SkillOptError, ModelError) as error:
            problems.append(f"{label}: {told(error)}")
    problems += [] if problems else _shared_folders(ready)
    if problems:
        raise SkillOptError("\n".join([*problems, "Nothing was begun."]))
    return ready


def _shared_folders(ready: Sequence[_Ready]) -> list[str]:
    """A sentence for each folder that several runs would write into."""
    by_folder: dict[Path, list[str]] = {}
    for one in ready:
        by_folder.setdefault(one.directory.root.resolve(), []).append(one.label)
    return [
        f"{' and '.join(labels)} would write into the same folder, {folder}: give each configuration once, with a name "
        f"and, if it sets one, an env.out_root of its own."
        for folder, labels in by_folder.items()
        if len(labels) > 1
    ]


def _shared_budget(ready: Sequence[_Ready]) -> Budget:
    """One budget for all. Its prices are those of every configuration."""
    first = ready[0].prepared.settings
    for one in ready[1:]:
        if one.prepared.settings.budget != first.budget:
            raise SkillOptError(
                f"{ready[0].label} and {one.label} have different sections budget, and several configurations share "
                f"one: say what all of them may use together, as in -o budget.usd=20. Nothing was begun."
            )
    prices = {model: price for one in ready for model, price in one.prepared.settings.model.prices.items()}
    return Budget(first.budget, first.place_of, prices)


def _shared_limits(prepared: Sequence[Prepared]) -> dict[str, EndpointLimit]:
    """A limit for each endpoint that any run asks: as many calls at once as one of them alone would make at most."""
    most: dict[str, int] = {}
    for one in prepared:
        workers = max(one.settings.env.workers, one.settings.gradient.analyst_workers)
        for role in one.settings.backends:
            endpoint = one.models.backend(role).endpoint(role)
            most[endpoint] = max(workers, most.get(endpoint, 0))
    return {endpoint: EndpointLimit(limit) for endpoint, limit in most.items()}


def _run(one: _Ready, stop: threading.Event, budget: Budget) -> SeveralRun:
    """One run, whatever becomes of it."""
    where: dict[str, Any] = {"label": one.label, "folder": str(one.directory.root)}
    if stop.is_set():
        return SeveralRun(
            **where, status=NOT_BEGUN, sentence="stopped before its turn.", exit_code=StoppedEarly.exit_code
        )
    try:
        summary = train_prepared(one.prepared, one.directory, stop, budget)
        report_of(summary)
    except StoppedEarly as error:
        ended: dict[str, Any] = {"status": STOPPED, "sentence": told(error), "exit_code": error.exit_code}
    except Exception as error:  # whatever it is, it ends this run and no other
        sentence, code = explained(error)
        ended = {"status": FAILED, "sentence": sentence, "exit_code": code}
    else:
        used = summary.token_summary.get("_total", {})
        left = summary.budget or (
            "" if summary.status == FINISHED else "its test is incomplete; run the same command again."
        )
        code = exit_code(summary.status)
        return SeveralRun(**where, status=summary.status, sentence=left, exit_code=code, summary=summary, used=used)
    return SeveralRun(**where, **ended, used=_used(one.directory.root / CALLS))


def _used(calls: Path) -> Mapping[str, Any]:
    """What the calls of a run that did not come to its end used."""
    if not calls.exists():
        return {}
    ledger = Ledger(calls, read_only=True)
    try:
        return token_summary(ledger)["_total"]
    finally:
        ledger.close()


def exit_code(status: str) -> int:
    """0 for a run that is finished, 4 at a limit of its budget, 3 for another that stopped before its end."""
    return {FINISHED: 0, "budget": BudgetSpent.exit_code}.get(status, StoppedEarly.exit_code)
