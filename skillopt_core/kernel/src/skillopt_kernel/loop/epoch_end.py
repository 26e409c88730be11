"""The end of an epoch: slow update and meta skill, as far as a plugin performs them, and its record."""

from __future__ import annotations

from collections import Counter

import attrs
from attrs import define

from skillopt_kernel.history import EpochRecord
from skillopt_kernel.loop import artifacts
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.checkpoint import save
from skillopt_kernel.loop.plan import PlannedStep
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.scoring import accept
from skillopt_kernel.records import Applied, GateDecision
from skillopt_kernel.skill import shown, with_region
from skillopt_kernel.store.files import write_json, write_text


@define(eq=False)
class EpochContext:
    """One epoch at its end: the `Epoch` of `skillopt_kernel.interfaces`."""

    number: int
    steps: tuple[int, ...]
    first_skill: str
    last_skill: str


def end_epoch(run: RunContext, number: int, steps: tuple[PlannedStep, ...]) -> None:
    """Ask for guidance and advice, record the epoch, and commit it."""
    state = run.state_of_run
    run.place.epoch, run.place.step = number, None
    numbers = tuple(step.number for step in steps)
    epoch = EpochContext(number, numbers, run.skill_after(numbers[0] - 1), state.current.skill)
    timing: dict[str, float] = {}
    if run.settings.optimizer.use_slow_update:
        with run.stage("slow_update", timing) as made:
            made["action"] = slow_update(run, epoch)
    if run.settings.optimizer.use_meta_skill and number < run.plan.num_epochs:
        with run.stage("meta_skill", timing) as made:
            made["action"] = meta_skill(run, epoch)
    record = epoch_record(run, number, numbers)
    state.epochs.append(record)
    state.epoch_ended = number
    state.memory.clear()  # the buffer speaks of the epoch's steps only
    save(run)
    run.emit(
        "epoch_finished",
        accepts=record.accepts,
        rejects=record.rejects,
        skips=record.skips,
        best_score=record.best_score_at_epoch_end,
        current_score=record.current_score_at_epoch_end,
    )


def slow_update(run: RunContext, epoch: EpochContext) -> str:
    """Write the guidance into its region, if a plugin gave some; returns what was done."""
    made = run.hooks.slow_update(run, epoch, run.current.skill)
    if made is None:
        return "not_performed"
    folder = run.directory.slow_update(epoch.number)
    decision = None if made.content is None else take_guidance(run, epoch, made.content)
    action = "no_content" if decision is None else decision.action
    result = {**made.record, "slow_update_content": made.content, "action": action}
    if decision is not None:
        result |= {"selection_hard": decision.hard, "selection_soft": decision.soft, "reason": decision.reason}
    write_json(folder / "slow_result.json", result)
    write_json(folder / "comparison_pairs.json", list(made.pairs))
    return action


def take_guidance(run: RunContext, epoch: EpochContext, content: str) -> GateDecision:
    """The skill with the guidance in its region, judged as any edit or forced, as configured."""
    state, folder = run.state_of_run, run.directory.slow_update(epoch.number)
    skill = state.current.skill
    candidate = with_region(skill, "slow_update", content)
    write_text(folder / "candidate_skill.md", candidate)
    run.place.purpose = Purpose("selection", run.directory.relative(folder / "selection_eval"))
    if shown(candidate) == shown(skill):
        return GateDecision("skip_no_change", skill, reason="the guidance is what the skill says already")
    if run.settings.optimizer.slow_update_gate_with_selection:
        decision = run.judge(Applied(candidate), state.current, state.best)
    else:
        decision = GateDecision("force_accept", candidate, reason="optimizer.slow_update_gate_with_selection is false")
    artifacts.write_selection(run, candidate)
    if decision.accepted:
        accept(run, decision, state.step)
        write_text(folder / "skill.md", decision.skill)
        state.current_path = run.directory.relative(folder / "skill.md")
        state.current = attrs.evolve(state.current, origin=f"slow_update_epoch_{epoch.number:02d}")
        if state.best.skill == state.current.skill:
            state.best = attrs.evolve(state.best, origin=state.current.origin)
            state.best_path = state.current_path
    return decision


def meta_skill(run: RunContext, epoch: EpochContext) -> str:
    """Keep new advice for the optimizer, if a plugin gave some; an epoch without keeps the earlier."""
    content = run.hooks.meta_skill(run, epoch)
    if not content:
        return "not_performed" if content is None else "no_content"
    run.state_of_run.meta = content
    folder = run.directory.meta_skill(epoch.number)
    write_json(folder / "meta_skill_result.json", {"action": "write_meta_skill", "meta_skill_content": content})
    return "write_meta_skill"


def epoch_record(run: RunContext, number: int, steps: tuple[int, ...]) -> EpochRecord:
    state = run.state_of_run
    actions = Counter(record.action for record in state.history if record.step in steps)
    return EpochRecord(
        epoch=number,
        steps=len(steps),
        accepts=sum(actions[name] for name in ("accept", "accept_new_best", "force_accept")),
        rejects=actions["reject"],
        skips=sum(count for name, count in actions.items() if name.startswith("skip_")),
        best_score_at_epoch_end=state.best_score,
        current_score_at_epoch_end=state.current_score,
    )
