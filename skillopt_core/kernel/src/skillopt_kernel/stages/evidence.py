"""What the optimizer is shown: the skill whole, the trajectories as they happened, and what was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt_kernel.interfaces import Run, Step, UpdateMode
from skillopt_kernel.records import Outcome, Turn
from skillopt_kernel.skill import shown

LABELS = {"assistant": "agent", "tool": "result"}


def section(title: str, text: str) -> str:
    """A second-level section, or nothing when there is no text."""
    return f"## {title}\n\n{text.strip()}\n" if text.strip() else ""


def skill_section(skill: str, title: str = "Current skill") -> str:
    """A skill, whole: what is not shown cannot be kept."""
    fence = "~~~~"
    while fence in skill:
        fence += "~"
    return f"## {title}\n\n{fence}markdown\n{skill.rstrip()}\n{fence}\n"


def joined(*sections: str) -> str:
    """A user message of its sections, without those that are empty."""
    return "\n".join(text for text in sections if text)


def evidence_message(
    run: Run, step: Step, outcomes: Sequence[Outcome], skill: str, solved: Mapping[str, tuple[int, int]]
) -> str:
    """The user message of an analyst's call. `solved`: by task, how many of how many attempts, where it has several."""
    blocks = [
        trajectory_block(run, number, outcome, skill, solved.get(outcome.task_id))
        for number, outcome in enumerate(outcomes, 1)
    ]
    return joined(
        skill_section(skill),
        section("Room left", run.room(skill)),
        section("What was tried before", step.memory),
        section("Advice from earlier epochs", step.meta),
        section(f"Trajectories ({len(outcomes)})", "\n\n".join(blocks)),
    )


def trajectory_block(run: Run, number: int, outcome: Outcome, skill: str, solved: tuple[int, int] | None = None) -> str:
    """One scored trajectory: what it is about, how it was judged and why, and every turn."""
    whole = run.whole(outcome)
    lines = [f"### Trajectory {number}: {outcome.task_id}"]
    if outcome.kind:
        lines.append(f"Task type: {outcome.kind}")
    if solved is not None:
        lines.append(f"Attempts at this task: {solved[1]}, of which {solved[0]} solved it")
    score = outcome.score
    if score is not None:
        below = run.settings.gradient.failure_below
        partly = f" (a failure: hard is below {below:g})" if 0 < score.hard < below else ""
        lines.append(f"Score: hard {score.hard:g}, soft {score.soft:.2f}{partly}")
        if score.feedback:
            lines.append(f"Feedback: {score.feedback}")
    return "\n".join([*lines, *evidence_sections(run, whole), *conversation(whole, skill)])


def evidence_sections(run: Run, whole: Outcome) -> list[str]:
    """What the environment adds for analysts, each under its title."""
    return [f"#### {title}\n{text.strip()}" for title, text in run.evidence(whole).items() if text.strip()]


def conversation(whole: Outcome, skill: str, name: str = "") -> list[str]:
    """Every turn of an attempt, under a title. `name` of the skill, where there are two."""
    turns = whole.attempt.trajectory if whole.attempt is not None else ()
    title = f"#### Conversation with {name}" if name else "#### Conversation"
    return [title, *(render_turn(turn, shown(skill), name or "the current skill") for turn in turns)]


def render_turn(turn: Turn, skill: str, name: str = "the current skill") -> str:
    """One turn as text. The skill's own text in a prompt is named, not repeated for each trajectory."""
    content = turn.content
    if skill.strip() and turn.role in ("system", "user"):
        content = content.replace(skill.strip(), f"({name})")
    label = LABELS.get(turn.role, turn.role)
    step = f" {turn.step}" if turn.step is not None else ""
    lines = [f"[{label}{step}] {content}"] if content or not turn.tool_calls else []
    lines += [f"[action{step}] {call.name}({call.arguments})" for call in turn.tool_calls]
    return "\n".join(lines)


def items_as_json(mode: UpdateMode, items: Sequence[Any]) -> str:
    return json.dumps([mode.write_item(item) for item in items], ensure_ascii=False, indent=1)


def schema_text(mode: UpdateMode) -> str:
    """One item's JSON schema, as prompts show it."""
    return json.dumps(mode.item_schema, ensure_ascii=False, indent=1)
