"""Preparing a run: drivers made, data and settings checked, before anything is written or spent."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import define, frozen

from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Environment, Gate, Scheduler, UpdateMode
from skillopt_kernel.loop.start import StartSkill, start_skill
from skillopt_kernel.models.opening import Models
from skillopt_kernel.plugins.assembly import Assembled, assemble
from skillopt_kernel.plugins.calls import HookCalls
from skillopt_kernel.plugins.discovery import load_manifest, make_driver, owner_of
from skillopt_kernel.prompting import Prompt, resolve_prompts
from skillopt_kernel.records import Splits
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.splits import check_splits, check_train_size
from skillopt_kernel.stages import default_stages
from skillopt_kernel.store.patterns import finders
from skillopt_kernel.store.redaction import Redactor

EXECUTORS = {"thread": "threads", "process": "processes"}
"""Which executor `auto` means, by what the environment says of itself."""


@define(eq=False)
class Prepared:
    """A configuration with its drivers made and its data checked; nothing is written or spent yet.

    evaluates  the split on which the skill is only evaluated, or "all"; empty: the skill is trained
    replay     the recorded run that answers every call, see the backend `replay`; `None`: the models answer
    """

    settings: Config
    hooks: HookCalls
    environment: Environment
    splits: Splits
    start: StartSkill
    mode: UpdateMode
    scheduler: Scheduler
    gate: Gate
    prompts: Mapping[str, Prompt]
    models: Models
    executor: str
    logger: logging.Logger
    evaluates: str
    replay: Any

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What can change a result: configuration, start skill, data, prompts, and the drivers' versions."""
        data = hashlib.sha256(getattr(self.environment, "further_data", "").encode())
        for name in ("train", "selection", "test"):
            data.update("|".join([name, *(task.content_hash() for task in getattr(self.splits, name))]).encode())
        # Where attempts run changes no result.
        owners = {kind: owner_of(kind, one.name) for kind, one in self.settings.drivers.items() if kind != "executor"}
        owners |= {role: owner_of("backend", choice.name) for role, choice in self.settings.backends.items()}
        return {
            **self.settings.fingerprint(),
            "start_skill": skill_hash(self.start.text),
            "data": data.hexdigest()[:16],
            "prompts": {name: prompt.hash for name, prompt in self.prompts.items()},
            "drivers": owners,
            **({"evaluates": self.evaluates} if self.evaluates else {}),
        }


def prepare(
    config: Config,
    plugins: Sequence[tuple[str, Any]] = (),
    *,
    skill: StartSkill | None = None,
    evaluates: str = "",
    replay: str | Path | None = None,
) -> Prepared:
    """Assemble the hooks, let them configure, make the drivers and check the data.

    plugins: further hook plugins as (name, object), asked before the defaults. skill: what to start from,
    in place of what is configured. evaluates: the split on which it is only evaluated; empty: it is trained.
    replay: the directory of the run whose ledger answers in place of the models.
    """
    logger = logging.getLogger("skillopt")
    folder = config.path.parent if config.path is not None else Path.cwd()
    assembled = assemble(default_stages(), config.hooks, folder, drivers=plugins, where=config.place_of)
    config = configured(config, assembled, logger)
    context = DriverContext(logger=logger, seed=config.train.seed)
    finders()  # one that cannot be used is told of before anything is written
    environment = make_environment(config, logger)
    splits = Redactor(config.credentials).redact_value(environment.splits())
    check_splits(splits, selection_needed=config.evaluation.use_gate)
    splits = first_tasks(splits, config)
    if not evaluates:
        check_train_size(config.train.train_size, len(splits.train), config.env.limit)
    recorded = replay and make_driver("backend", "replay", None, DriverContext(logger, common=Path(replay)))
    models = open_models(config, logger, recorded.backend if recorded else make_driver)
    models.check_capabilities("target", environment.targets)
    models.check_capabilities("optimizer")
    mode = _driver(config, "update", context)
    return Prepared(
        settings=config,
        hooks=assembled.calls,
        environment=environment,
        splits=splits,
        start=skill or start_skill(config, environment),
        mode=mode,
        scheduler=_driver(config, "scheduler", context),
        gate=_driver(config, "gate", context),
        prompts=resolve_prompts(config.prompts, environment, mode),
        models=models,
        executor=executor_for(config, environment),
        logger=logger,
        evaluates=evaluates,
        replay=recorded,
    )


def executor_for(config: Config, environment: Environment) -> str:
    """The executor that the configuration names; `auto` follows the environment. Raises when it cannot be used."""
    choice = config.drivers["executor"]
    name = EXECUTORS[environment.isolation] if choice.name == "auto" else choice.name
    load_manifest("executor", name, choice.where)
    if name == "threads" and environment.isolation == "process" and config.env.workers > 1:
        raise ConfigError(
            f"{choice.where}: one instance of the environment {config.driver('env').name!r} serves one attempt at a "
            f"time, so that threads cannot share it. Write `executor: processes`, or `env.workers: 1`."
        )
    return name


def configured(config: Config, assembled: Assembled, logger: logging.Logger) -> Config:
    """The configuration after every `skillopt_configure`."""
    before_run, known = BeforeRun(config, config.train.seed, logger), config.warnings
    for plugin, overrides in assembled.calls.configure(before_run):  # type: ignore[arg-type]
        config = config.with_overrides(overrides, origin=f"plugin {plugin}")
    for warning in config.warnings:
        if warning not in known:  # the others were shown when the configuration was loaded
            logger.warning("%s", warning)
    return config


@frozen
class BeforeRun:
    """What `skillopt_configure` is given: there is no run yet."""

    settings: Config
    seed: int
    logger: logging.Logger


def first_tasks(splits: Splits, config: Config) -> Splits:
    """The first `sel_env_num` selection and `test_env_num` test tasks; 0 means all."""
    selection, test = config.evaluation.sel_env_num or None, config.evaluation.test_env_num or None
    return Splits(tuple(splits.train), tuple(splits.selection)[:selection], tuple(splits.test)[:test])


def make_environment(config: Config, logger: logging.Logger) -> Environment:
    """The environment that the configuration names; `ConfigError` when it names none."""
    environment: Environment = _driver(config, "env", DriverContext(logger, config.train.seed, common=config.env))
    return environment


def _driver(config: Config, kind: str, context: DriverContext) -> Any:
    choice = config.driver(kind)
    return make_driver(kind, choice.name, choice.settings, context, where=choice.where)


def open_models(config: Config, logger: logging.Logger, make: Callable[..., Any] = make_driver) -> Models:
    """The backends of the run, made but not asked: what is wrong with their settings shows before anything else."""

    def context(role: str, choice: Any) -> DriverContext:
        return DriverContext(logger, config.train.seed, role=role, model=choice.model, common=config.execution)

    return Models(
        config.backends,
        make,
        context=context,
        limit=max(config.env.workers, config.gradient.analyst_workers),
        redactor=Redactor(config.credentials),
        effort=config.model.reasoning_effort or None,
        max_rejections=config.model.max_rejections,
        prices=config.model.prices,
    )
