"""Opening a prepared run: lock, store, models, pool and the last checkpoint; closed in reverse."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import attrs

from skillopt_kernel.config.schema import BudgetSettings
from skillopt_kernel.errors import Pending, StoppedEarly
from skillopt_kernel.execution import ModelCalls
from skillopt_kernel.interfaces import DriverContext, Executor
from skillopt_kernel.loop.attempts import AttemptPool, Purpose
from skillopt_kernel.loop.budget import Budget
from skillopt_kernel.loop.jobs import AttemptJobs, Limits
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.spent import outlook
from skillopt_kernel.loop.state import LoopState, restore
from skillopt_kernel.loop.worker import Workplace
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Ask
from skillopt_kernel.splits import PARTS
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.event_log import EventLog
from skillopt_kernel.store.lock import RunLock
from skillopt_kernel.store.outcomes import OutcomeStore
from skillopt_kernel.store.redaction import Redactor


@contextmanager
def open_run(
    prepared: Prepared, directory: RunDirectory, stop: threading.Event, budget: Budget | None = None
) -> Iterator[RunContext]:
    """Lock the directory, open store, models and pool, take up the last checkpoint; close all in reverse.

    Once `stop` is set nothing more is begun and what is in flight is finished. A failure of the run cuts short
    what is in flight, too. budget: shared with other runs, in place of the configuration's own.
    """
    settings, models, abort = prepared.settings, prepared.models, threading.Event()
    budget = budget_for(prepared, budget)
    with ExitStack() as closing:
        closing.enter_context(RunLock(directory.root))
        state = LoopState.at_start(prepared.start.text)
        restore(directory, state)
        # Before all that a run leaves, so that a folder without a fingerprint is never one that was begun.
        directory.begin(settings.as_dict(), prepared.fingerprint)
        redactor = Redactor(settings.credentials)
        outcomes = closing.enter_context(OutcomeStore(directory.root, redactor))
        events = EventLog(directory.root, directory.root.name, prepared.hooks.observe, redactor)
        closing.callback(events.close)
        ledger: Ledger = (prepared.replay.ledger if prepared.replay else Ledger)(directory.root / CALLS)
        closing.callback(ledger.close)
        account = budget.open(ledger, directory.root, state.seconds)
        models.attach(ledger, lambda data: events.emit("model_called", **data), abort, account)
        closing.callback(models.close)
        directory.save_skill(0, prepared.start.text)
        executor = make_executor(prepared, abort, redactor)
        closing.callback(executor.close)
        parts = attrs.asdict(prepared, recurse=False)
        parts |= {"directory": directory, "outcomes": outcomes, "events": events, "state_of_run": state, "stop": stop}
        run = RunContext(**parts, account=account)
        account.outlook = partial(outlook, run)
        run.pool = AttemptPool(
            # One after another a replay asks no task that the early stop of the recorded run may have left out.
            lambda: 1 if prepared.replay else executor.capacity,
            key=lambda ask: (run.digest(ask.skill), ask.task.id, ask.sample),
            find=outcomes.find,
            start=make_jobs(run, executor, abort).start,
            expected=outcomes.expected_seconds,
            missing_retries=settings.evaluation.missing_retries,
        )
        threading.Thread(target=stop_when_asked, args=(run,), daemon=True).start()
        try:
            run.emit("run_started", **about(run))
            yield run
        except BaseException as error:
            if isinstance(error, Pending):
                run.pool.drain(whole=True)
                error.args = (models.waiting() or str(error),)
            if not isinstance(error, StoppedEarly):
                abort.set()
            account.stop()
            error.args = tuple(redactor.diagnostics(one) if isinstance(one, str) else one for one in error.args)
            run.place.stage = None
            run.emit("run_failed", error=type(error).__name__, message=str(error))
            raise
        finally:
            run.ended.set()
            run.pool.stop()
            run.pool.drain()


def budget_for(prepared: Prepared, shared: Budget | None) -> Budget:
    """The budget of a run, checked before anything is written. A replay spends nothing and has no limits."""
    limits = BudgetSettings() if prepared.replay else prepared.settings.budget
    budget = shared or Budget(limits, prepared.settings.place_of, prepared.settings.model.prices)
    roles = ("target",) if prepared.evaluates else ("target", "optimizer")
    if budget.limits:  # without one no price is looked up before the first call
        budget.check({role: prepared.models.sample(role) for role in roles})
    return budget


def stop_when_asked(run: RunContext) -> None:
    """Carry the wish to stop to the pool, whose asker may be waiting for attempts."""
    while not run.ended.is_set():
        if run.stop.wait(0.2):
            run.pool.stop()
            run.account.stop()
            return


def about(run: RunContext) -> dict[str, Any]:
    """What a run is about to do: the data of `run_started`, printed at the start."""
    config, state = run.settings, run.state_of_run
    ends = [name for name in ("slow_update", "meta_skill") if getattr(config.optimizer, f"use_{name}")]
    return {
        "config": config.name,
        "resumed": state.step > 0 or run.outcomes.count > 0,
        "step_done": state.step,
        **{name: getattr(state, name) for name in ("current_score", "best_score")},
        "models": run.models.describe(),
        "splits": {name: len(getattr(run.splits, name)) for name in PARTS},
        **({"evaluates": run.evaluates} if run.evaluates else {}),
        "epochs": config.train.num_epochs,
        "steps_per_epoch": run.plan.steps_per_epoch,
        "total_steps": run.plan.total_steps,
        **{name: getattr(config.train, name) for name in ("seed", "batch_size", "accumulation", "samples_per_task")},
        "environment": config.drivers["env"].name,
        **{name: config.drivers[name].name for name in ("scheduler", "update")},
        "gate": config.drivers["gate"].name if config.evaluation.use_gate else "off (every candidate is taken)",
        "epoch_end": [name for name in ends if run.hooks.performs(name)],
        "executor": run.executor,
        "workers": config.env.workers,
        "budget": run.account.budget.standing(),
        "folder": os.path.relpath(run.directory.root),
        "start_skill": dict(run.start.source),
        "skill_hash": run.digest(state.current.skill),
        "warnings": list(config.warnings),
        "warning": run.warned(),
    }


def make_executor(prepared: Prepared, abort: threading.Event, redactor: Redactor) -> Executor:
    """The executor of the run, which gets the environment, or what it needs to make it anew in a worker."""
    settings = prepared.settings
    choice, chosen = settings.drivers["executor"], settings.drivers["env"]
    place = Workplace(prepared.environment, chosen.name, chosen.settings, settings.env, abort, redactor.redact_value)
    context = DriverContext(logger=prepared.logger, seed=settings.train.seed, common=place)
    made: Executor = make_driver("executor", prepared.executor, choice.settings, context, where=choice.where)
    return made


def make_jobs(run: RunContext, executor: Executor, abort: threading.Event) -> AttemptJobs:
    """What turns the pool's asks into the executor's jobs; models are opened at their first call."""
    env, models = run.settings.env, run.models
    kind = models.check_capabilities("target", run.environment.targets)

    def scope(ask: Ask) -> str:
        return f"{run.digest(ask.skill)}/{ask.task.content_hash()}/{ask.sample}/{ask.task.id}"

    def calls(ask: Ask, purpose: Purpose) -> ModelCalls:
        target, judge = (models.scoped(role, scope(ask), purpose.epoch, purpose.step) for role in ("target", "judge"))
        return ModelCalls(target.complete, judge.complete, target.run)

    return AttemptJobs(
        executor,
        calls=calls,
        scoring_failed=lambda ask: models.ledger.retire("judge", scope(ask)),
        journal=run.outcomes,
        digest=run.digest,
        limits=Limits(env.exec_timeout or None, env.attempt_timeout or None, run.seed, kind),
        stop=abort,
        emit=run.emit,
    )
