"""The model of each role: its backend, its key, its endpoint or program, and, if asked for, one call."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
from skillopt_kernel.config.fields import is_secret
from skillopt_kernel.config.resolved import BackendChoice, Config
from skillopt_kernel.errors import ModelError, Pending, SkillOptError
from skillopt_kernel.interfaces import Backend, Environment
from skillopt_kernel.models.opening import Models
from skillopt_kernel.models.pricing import usd_of
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_kernel.models.roles import ROLES
from skillopt_kernel.plugins.discovery import load_manifest
from skillopt_kernel.records import Usage

from skillopt_commands.checks.finding import Report

QUESTION = (Message("user", "Answer with the word ok."),)
MOST = Usage(1, 20, 16)
"""What such a call uses at most: tokens of the question, tokens of the reply."""
SECONDS = 60.0


def check_roles(report: Report, config: Config, models: Models, environment: Environment | None) -> None:
    """Every role's backend with its findings. The judge is left out where it is the optimizer's model."""
    for role in roles_of(config):
        backend = report.attempt(role, partial(models.backend, role))
        if backend is None:
            continue
        kinds = frozenset({"chat"})
        if role == "target":
            kinds = frozenset({"chat", "agent"}) if environment is None else environment.targets
        kind = report.attempt(role, partial(models.check_capabilities, role, kinds))
        model = report.attempt(role, partial(models.model, role))
        if kind is not None and model is not None:
            named = f"model {model}" if model else "its own model"
            report.add(role, "ok", f"{config.backends[role].name} as {kind}, {named}, {backend.endpoint(role)}")
        report.findings(role, keys(config, config.backends[role]))
        report.findings(role, report.attempt(role, partial(backend.check, role)) or ())


def roles_of(config: Config) -> list[str]:
    """The roles that have a backend; the judge where it is another than the optimizer's."""

    def same(choice: BackendChoice) -> tuple[Any, ...]:
        return choice.name, choice.model, choice.settings

    chosen = config.backends
    roles = [role for role in ROLES if role in chosen]
    if {"judge", "optimizer"} <= set(roles) and same(chosen["judge"]) == same(chosen["optimizer"]):
        roles.remove("judge")
    return roles


def keys(config: Config, choice: BackendChoice) -> Iterator[Any]:
    """Whether what the backend needs is set, and where each credential comes from; never a value."""
    for name in load_manifest("backend", choice.name).needs:
        if not os.environ.get(name, "").strip():
            yield (
                "error",
                f"the environment variable {name} is not set, and {choice.name} cannot work without it; set it.",
            )
    for field in attrs.fields(type(choice.settings)) if choice.settings is not None else ():
        if is_secret(field) and getattr(choice.settings, field.name):
            place = config.origins.get(f"model.{choice.role}_{choice.prefix}{field.name}", "the configuration")
            yield "ok", f"{choice.prefix}{field.name} is set ({place})"


def price_of_calls(config: Config, models: Models) -> str:
    """What one call of each role is going to ask and to cost, in a sentence."""
    told = []
    for role in roles_of(config):
        with suppress(SkillOptError, ModelError):
            usd = usd_of(models.model(role), models.backend(role).endpoint(role), MOST, config.model.prices)
            told.append(f"{role} {'at an unknown price' if usd is None else f'at most ${usd:.6f}'}")
    return (
        f"Asking each model for one word ({MOST.prompt_tokens} tokens, {MOST.completion_tokens} for the reply): "
        f"{'; '.join(told)}."
    )


def ask_roles(report: Report, config: Config, models: Models) -> None:
    """Ask each chat model for one word, past ledger and retries. An agent is not run."""
    for role in roles_of(config):
        backend = report.attempt(role, partial(models.backend, role))
        if backend is not None and "chat" not in backend.capabilities.get(role, ()):
            report.add(role, "warning", "not asked: it is an agent, and running one costs more than a word")
        elif backend is not None:
            report.attempt(role, partial(_ask, backend, role), str)


def _ask(backend: Backend, role: str) -> str:
    began = time.monotonic()
    request = ChatRequest(QUESTION, max_tokens=MOST.completion_tokens, stage="check", deadline=began + SECONDS)
    try:
        reply = backend.open_chat(role).complete(request)
    except Pending as pending:
        return str(pending)
    used = f"{reply.usage.prompt_tokens} tokens in, {reply.usage.completion_tokens} out"
    told = "of unknown size" if reply.usage.prompt_tokens is None else used
    return f"a call was answered in {time.monotonic() - began:.1f} s (finish {reply.finish}, {told})"
