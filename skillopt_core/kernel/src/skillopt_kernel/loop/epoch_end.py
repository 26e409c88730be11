"""The end of an epoch: slow update and meta skill, and the epoch's record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
from attrs import define

from skillopt_kernel.errors import ModelError
from skillopt_kernel.history import EpochRecord
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.commit import save
from skillopt_kernel.loop.length import refused_for_length
from skillopt_kernel.loop.memory import kept, memory_text
from skillopt_kernel.loop.patience import ended_early, epochs_without_best, is_last
from skillopt_kernel.loop.plan import PlannedStep
from skillopt_kernel.loop.run import Place, RunContext
from skillopt_kernel.loop.scoring import accept, ask_missing, ensure_scored, selection_fields, write_selection
from skillopt_kernel.models.spending import tokens_by_stage
from skillopt_kernel.records import Applied, GateDecision
from skillopt_kernel.skill import shown, with_region
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.store.files import write_json, write_text

TOLD = ("accepts", "rejects", "skips", "best_score_at_epoch_end", "current_score_at_epoch_end")
"""The fields of an epoch's record that its event carries."""

GUIDED = "the protected region of guidance in the skill"
"""What a slow update updates, as `slow_result.json` says."""


@define(eq=False)
class EpochContext:
    """One epoch at its end: the `Epoch` of `skillopt_kernel.interfaces`."""

    number: int
    steps: tuple[int, ...]
    first_skill: str
    last_skill: str
    memory: str = ""
    meta: str = ""


def end_epoch(run: RunContext, number: int, steps: tuple[PlannedStep, ...]) -> None:
    """Ask for guidance and advice, record the epoch, and commit it."""
    state, optimizer = run.state_of_run, run.settings.optimizer
    run.place = Place(number)
    numbers = tuple(step.number for step in steps)
    first, last = run.skill_after(numbers[0] - 1), state.current.skill
    epoch = EpochContext(number, numbers, first, last, memory_text(state.memory), state.meta)
    failures: Counter[str] = Counter()
    if optimizer.use_slow_update:
        failures.update(performed(run, "slow_update", slow_update, epoch))
    without_best = epochs_without_best(state, numbers)
    if optimizer.use_meta_skill and not is_last(run.settings.train, number, without_best):
        failures.update(performed(run, "meta_skill", meta_skill, epoch))
    actions = Counter(record.action for record in state.history if record.step in numbers)
    record = EpochRecord(
        epoch=number,
        steps=len(numbers),
        accepts=sum(actions[name] for name in ("accept", "accept_new_best", "force_accept")),
        rejects=actions["reject"],
        skips=sum(count for name, count in actions.items() if name.startswith("skip_")),
        best_score_at_epoch_end=state.best_score,
        current_score_at_epoch_end=state.current_score,
        epochs_without_best=without_best,
        model_failures=dict(failures),
        timing=run.place.timing,
        tokens=tokens_by_stage(run.models.ledger, epoch=number, step=None),
    )
    state.epochs.append(record)
    state.epoch_ended = number
    state.memory = kept(state.memory) if run.settings.gradient.keep_step_buffer else []
    save(run)
    told = {name.removesuffix("_at_epoch_end"): getattr(record, name) for name in TOLD}
    run.emit("epoch_finished", **told, ended_early=ended_early(run.settings.train, state), warning=run.warned())


def performed(
    run: RunContext, stage: str, perform: Callable[[RunContext, EpochContext], dict[str, Any]], epoch: EpochContext
) -> list[str]:
    """Perform a stage of the epoch's end; returns the kind of its failure, if there was one."""
    with run.stage(stage) as made:
        result = perform(run, epoch)
        made["action"] = result["action"]
    return [result["error"].partition(":")[0]] if "error" in result else []


def slow_update(run: RunContext, epoch: EpochContext) -> dict[str, Any]:
    """Write the guidance into its region, if a plugin gave some; returns what `slow_result.json` holds."""
    folder = run.directory.slow_update(epoch.number)
    run.place.purpose = Purpose("rollout", run.directory.relative(folder / "rollout"), epoch=epoch.number)
    made = run.hooks.slow_update(run, epoch, run.current.skill)
    if made is None:
        return {"action": "not_performed"}
    result = {"action": "no_content", "reasoning": "", **made.record, "slow_update_content": made.content}
    if made.content is not None:
        candidate = with_region(run.current.skill, "slow_update", made.content)
        decision = take_guidance(run, epoch, candidate)
        result |= {"action": decision.action, "reason": decision.reason, "candidate_hash": run.digest(candidate)}
        result |= {**selection_fields(decision), "update_origin": origin_of(epoch), "update_target": GUIDED}
    write_json(folder / "slow_result.json", result)
    if made.pairs:
        write_json(folder / "comparison_pairs.json", list(made.pairs))
    return result


def origin_of(epoch: EpochContext) -> str:
    """What a skill's origin says once it holds the guidance of this epoch."""
    return f"slow_update_epoch_{epoch.number:02d}"


def take_guidance(run: RunContext, epoch: EpochContext, candidate: str) -> GateDecision:
    """The skill with the guidance in its region, judged as any edit or forced, as configured."""
    state, folder = run.state_of_run, run.directory.slow_update(epoch.number)
    skill = state.current.skill
    write_text(folder / "candidate_skill.md", candidate)
    ensure_scored(run)  # a run that was resumed here has not asked yet
    ask_missing(run)
    run.place.purpose = Purpose("selection", run.directory.relative(folder / "selection_eval"), epoch=epoch.number)
    if shown(candidate) == shown(skill):
        return GateDecision("skip_no_change", skill, reason="the guidance is what the skill says already")
    refused = refused_for_length(candidate, skill, run.settings.optimizer.max_skill_tokens)
    if refused is not None:
        return refused
    if run.settings.optimizer.slow_update_gate_with_selection:
        decision = run.judge(Applied(candidate), state.current, state.best)
    else:
        decision = GateDecision("force_accept", candidate, reason="optimizer.slow_update_gate_with_selection is false")
    if not decision.accepted:  # what is accepted is asked everything, and written then
        write_selection(run, candidate)
        return decision
    accept(run, decision, state.step)
    write_text(folder / "skill.md", decision.skill)
    state.current_path = run.directory.relative(folder / "skill.md")
    state.hashes[state.current_path] = run.digest(decision.skill)
    state.current = attrs.evolve(state.current, origin=origin_of(epoch))
    if state.best.skill == state.current.skill:
        state.best = attrs.evolve(state.best, origin=state.current.origin)
        state.best_path = state.current_path
    return decision


def meta_skill(run: RunContext, epoch: EpochContext) -> dict[str, Any]:
    """Keep new advice for the optimizer, if a plugin gave some; an epoch without keeps the earlier.

    A failed call is no reason to end a run: it is recorded. Returns what `meta_skill_result.json` holds.
    """
    folder = run.directory.meta_skill(epoch.number)
    run.place.purpose = Purpose("rollout", run.directory.relative(folder / "rollout"), epoch=epoch.number)
    try:
        content = run.hooks.meta_skill(run, epoch)
        result: dict[str, Any] = {"action": "no_content", "meta_skill_content": content}
    except ModelError as error:
        content, result = "", {"action": "no_content", "error": failure_sentence(error)}
    if content is None:
        return {"action": "not_performed"}
    if content:
        run.state_of_run.meta, result["action"] = content, "write_meta_skill"
    write_json(folder / "meta_skill_result.json", result)
    return result
