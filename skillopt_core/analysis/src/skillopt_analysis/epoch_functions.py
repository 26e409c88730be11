"""Slow update and meta skill as functions: one optimizer call about two skills, without a run around it.

An example is in docs/python.md.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from skillopt_kernel.config.resolved import Config
from skillopt_kernel.config.schema import FAILURE_BELOW
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.interfaces import ChatModel, Optimizer
from skillopt_kernel.loop.api import Source, loaded_config
from skillopt_kernel.loop.preparing import open_models
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.prompting import make_prompt, read_prompt
from skillopt_kernel.records import Attempt, Outcome, Score, SlowUpdate, Task
from skillopt_kernel.skill import region, shown, skill_hash
from skillopt_kernel.stages import prompts as kernel_prompts
from skillopt_kernel.stages.comparison import Comparison, Pair, by_importance, conversations
from skillopt_kernel.stages.meta_skill import ask_for_advice
from skillopt_kernel.stages.slow_update import ask_for_guidance

Pairs = Sequence[Pair | Mapping[str, Any]]
"""Tasks with their outcomes under both skills: `Pair` objects, or rows as in a run's `comparison_pairs.json`.

A row is `{id, task, prev, curr}`, each side `{hard, soft, predicted_answer, fail_reason}` with scores 0..1 (soft: as
hard, if left out); the category is worked out from `hard`. `Pair` objects can bring their conversations.
"""

Asked = Source | Optimizer | ChatModel
"""Who is asked: a configuration, whose optimizer is opened and closed again, or an opened optimizer or model."""


def run_slow_update(
    previous_skill: str,
    current_skill: str,
    pairs: Pairs,
    previous_guidance: str | None = None,
    *,
    optimizer: Asked,
    overrides: Sequence[str] = (),
    failure_below: float = FAILURE_BELOW,
) -> SlowUpdate:
    """Ask the optimizer once for guidance that follows from how two skills did on the same tasks.

    previous_guidance  what the new guidance replaces; `None`: what stands in the current skill's region
    optimizer          see `Asked`; overrides: of a configuration, as `-o`
    failure_below      a row counts as failed when its hard score is below, as `gradient.failure_below`

    Returns the guidance (`content`, `None` when there is none) with pairs and numbers. Nothing is written or scored:
    `with_region(skill, "slow_update", content)` makes the candidate. Without pairs, or with two equal skills, there
    is nothing to ask: the record's `action` says "skip_no_pairs" or "skip_identical". Pairs that do not fit the
    model's context are halved, the less important half left out. Raises `ModelError` when there is no usable reply
    and `SkillOptError` for what the caller can put right.
    """
    comparison = _compared(previous_skill, current_skill, pairs, failure_below)
    if not comparison.pairs:
        return SlowUpdate(None, record=comparison.record())
    guidance = region(current_skill, "slow_update") if previous_guidance is None else previous_guidance
    with _opened(optimizer, overrides, "slow_update") as (model, system):
        return ask_for_guidance(model, system, comparison, guidance, partial(_conversations, comparison))


def run_meta_skill(
    previous_skill: str,
    current_skill: str,
    pairs: Pairs,
    previous_meta_skill: str = "",
    *,
    optimizer: Asked,
    overrides: Sequence[str] = (),
    memory: str = "",
    failure_below: float = FAILURE_BELOW,
) -> str | None:
    """Ask the optimizer once for advice to itself: which kinds of edits help and which hurt on these tasks.

    previous_meta_skill is the advice so far, memory what was tried, as text; the rest as in `run_slow_update`.
    Returns the whole new advice, "" when the optimizer has none to give, `None` when there was nothing to ask.
    """
    comparison = _compared(previous_skill, current_skill, pairs, failure_below)
    if not comparison.pairs:
        return None
    with _opened(optimizer, overrides, "meta_skill") as (model, system):
        details = partial(_conversations, comparison)
        return ask_for_advice(model, system, comparison, previous_meta_skill, memory, details)


def _compared(previous: str, current: str, pairs: Pairs, failure_below: float) -> Comparison:
    """As a run compares: pairs with a missing score are left out and counted, equal skills are not compared."""
    if shown(previous) == shown(current):
        return Comparison(previous, current, skipped="skip_identical")
    read = [
        pair if isinstance(pair, Pair) else _pair(number, pair, (previous, current), failure_below)
        for number, pair in enumerate(pairs, 1)
    ]
    scored = tuple(pair for pair in read if pair.prev.scored and pair.curr.scored)
    return Comparison(previous, current, by_importance(scored), scored, len(read) - len(scored))


def _pair(number: int, row: Mapping[str, Any], skills: tuple[str, str], failure_below: float) -> Pair:
    """A pair from a row of `comparison_pairs.json`. Raises `SkillOptError` that names the row and what is wrong."""
    try:
        task_id = str(row["id"])
        prev, curr = (_outcome(task_id, skill, row[name]) for name, skill in zip(("prev", "curr"), skills, strict=True))
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise SkillOptError(
            f"comparison pair {number} cannot be used: {what}. A pair is {{id, task, prev, curr}}, each side {{hard, "
            f"soft, predicted_answer, fail_reason}} with scores from 0 to 1."
        ) from error
    return Pair(Task(task_id, inputs={"question": str(row.get("task", ""))}), prev, curr, failure_below)


def _outcome(task_id: str, skill: str, side: Mapping[str, Any]) -> Outcome:
    if not isinstance(side, Mapping):
        raise TypeError(f"a side is {side!r}, no mapping")
    answer, hard = str(side.get("predicted_answer", "")), side["hard"]
    score = Score(hard, side.get("soft", hard), str(side.get("fail_reason") or ""))
    return Outcome(task_id, "", skill_hash(skill), 0, Attempt("" if answer == "N/A" else answer), score)


def _conversations(comparison: Comparison, pair: Pair) -> list[str]:
    told = any(side.attempt is not None and side.attempt.trajectory for side in (pair.prev, pair.curr))
    return conversations(comparison, pair.prev, pair.curr) if told else []


@contextmanager
def _opened(asked: Asked, overrides: Sequence[str], stage: str) -> Iterator[tuple[Optimizer, str]]:
    """The optimizer for one call of `stage`, and its system prompt: the configuration's file, else the kernel's."""
    if isinstance(asked, Config | str | Path | Mapping):
        config = loaded_config(asked, overrides)
        models, ledger = open_models(config, logging.getLogger("skillopt")), Ledger()
        models.attach(ledger, lambda _: None, threading.Event())
        try:
            yield models.optimizer(stage), _system_prompt(stage, config.prompts)
        finally:
            models.close()
            ledger.close()
        return
    if overrides:
        raise SkillOptError("overrides are for a configuration; an opened optimizer is used as it is.")
    yield _as_optimizer(asked, stage), _system_prompt(stage, {})


def _system_prompt(stage: str, files: Mapping[str, Path]) -> str:
    if stage in files:
        return make_prompt(stage, read_prompt(stage, files[stage]), str(files[stage])).fill()
    return make_prompt(stage, kernel_prompts()[stage], f"the prompt {stage} of the kernel's stage {stage}").fill()


def _as_optimizer(asked: Any, stage: str) -> Optimizer:
    optimizer = ModelOptimizer(asked.complete, stage) if hasattr(asked, "complete") else asked
    if not hasattr(optimizer, "ask_json"):
        raise SkillOptError(f"optimizer is {asked!r}: give a configuration, or an opened optimizer or chat model.")
    return optimizer
