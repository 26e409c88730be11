"""Whether a training by a configuration could begin: everything that it refuses, found at once and named."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from skillopt_kernel.config import load_config
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.interfaces import DriverContext, Environment
from skillopt_kernel.loop.opening import budget_for
from skillopt_kernel.loop.preparing import (
    configured,
    executor_for,
    first_tasks,
    make_environment,
    open_models,
    prepare,
)
from skillopt_kernel.loop.start import start_skill
from skillopt_kernel.plugins.assembly import assemble
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Splits
from skillopt_kernel.splits import PARTS, check_splits, check_train_size
from skillopt_kernel.stages import default_stages
from skillopt_kernel.store.redaction import Redactor

from skillopt_commands.checks.finding import Report
from skillopt_commands.checks.places import check_folder, check_places, check_temporary
from skillopt_commands.checks.roles import ask_roles, check_roles, price_of_calls
from skillopt_commands.start_skills import BLANK, is_blank

SILENT = logging.Logger("skillopt.doctor", logging.CRITICAL + 1)
"""What would be logged is found in the configuration's warnings."""


def check_run(
    report: Report,
    source: str | Path,
    overrides: Sequence[str],
    out: Path | None,
    announce: Callable[[str], Any] | None,
) -> None:
    """Check what `skillopt train` would use, with the functions that it uses itself, and write nothing.

    announce   gets the sentence on what calls are going to cost, which are then made; `None`: no model is called
    """
    loaded = report.attempt("configuration", lambda: load_config(source, overrides))
    if loaded is not None:
        report.credentials = loaded.credentials
        _check_config(report, loaded, out, announce)
    check_temporary(report)


def _check_config(report: Report, config: Config, out: Path | None, announce: Callable[[str], Any] | None) -> None:
    config = _after_hooks(report, config)
    report.add("configuration", "ok", f"{config.path or config.name} can be read")
    for warning in config.warnings:
        report.add("configuration", "warning", warning)
    environment = _check_data(report, config)
    for kind in ("gate", "scheduler", "update"):
        _check_driver(report, config, kind)
    with closing(open_models(config, SILENT)) as models:
        check_roles(report, config, models, environment)
        if announce is not None:
            announce(price_of_calls(config, models))
            ask_roles(report, config, models)
    if not report.well:
        check_folder(report, "run directory", out or config.env.out_root or Path("outputs"))
        return
    prepared = report.attempt("run", lambda: prepare(config))
    if prepared is not None:
        with closing(prepared.models):
            report.attempt("budget", lambda: budget_for(prepared, None), lambda made: _limits(made.limits))
            check_places(report, prepared, out)


def _after_hooks(report: Report, config: Config) -> Config:
    """The configuration as the hook plugins leave it, and what their own checks say."""
    folder = config.path.parent if config.path is not None else Path.cwd()
    defaults = default_stages()
    assembled = report.attempt("hooks", lambda: assemble(defaults, config.hooks, folder, where=config.place_of))
    if assembled is None:
        return config
    for name, plugin in assembled.manager.list_name_plugin():
        if name in assembled.owners:
            report.add("hooks", "ok", f"{name}, of {assembled.owners[name]}")
            report.own("hooks", plugin)
    return report.attempt("hooks", lambda: configured(config, assembled, SILENT)) or config


def _check_data(report: Report, config: Config) -> Environment | None:
    environment = report.attempt("environment", lambda: make_environment(config, SILENT))
    if environment is None:
        return None
    report.add("environment", "ok", config.driver("env").name)
    report.own("environment", environment)
    report.attempt("data", lambda: _splits(config, environment), _sizes)
    start = report.attempt(
        "start skill", lambda: start_skill(config, environment), lambda start: f"from {start.source['from']}"
    )
    if start is not None and is_blank(start.text):
        report.add("start skill", "warning", BLANK)
    report.attempt("executor", lambda: executor_for(config, environment), str)
    return environment


def _splits(config: Config, environment: Environment) -> Splits:
    splits = Redactor(config.credentials).redact_value(environment.splits())
    check_splits(splits, selection_needed=config.evaluation.use_gate)
    chosen = first_tasks(splits, config)
    check_train_size(config.train.train_size, len(chosen.train), config.env.limit)
    return chosen


def _sizes(splits: Splits) -> str:
    return ", ".join(f"{len(getattr(splits, part))} {part}" for part in PARTS) + " tasks"


def _check_driver(report: Report, config: Config, kind: str) -> None:
    choice, context = config.driver(kind), DriverContext(SILENT, config.train.seed)
    driver = report.attempt(kind, lambda: make_driver(kind, choice.name, choice.settings, context, where=choice.where))
    if driver is not None:
        report.add(kind, "ok", choice.name)
        report.own(kind, driver)


def _limits(limits: Sequence[Any]) -> str:
    return ", ".join(f"{limit.key} {limit.told(limit.most)}" for limit in limits) or "no limit"
