"""What the optimizer is shown: the skill whole, the trajectories as they happened, and what was tried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from skillopt_kernel.interfaces import Run, Step, UpdateMode
from skillopt_kernel.records import Outcome, Turn
from skillopt_kernel.skill import shown

LABELS = {"assistant": "agent", "tool": "result"}


def section(title: str, text: str) -> str:
    """A second-level section, or nothing when there is no text."""
    return f"## {title}\n\n{text.strip()}\n" if text.strip() else ""


def skill_section(skill: str) -> str:
    """The current skill, whole: what is not shown cannot be kept."""
    fence = "~~~~"
    while fence in skill:
        fence += "~"
    return f"## Current skill\n\n{fence}markdown\n{skill.rstrip()}\n{fence}\n"


def evidence_message(run: Run, step: Step, outcomes: Sequence[Outcome], skill: str) -> str:
    """The user message of an analyst's call."""
    blocks = [trajectory_block(run, number, outcome, skill) for number, outcome in enumerate(outcomes, 1)]
    parts = [
        skill_section(skill),
        section("What was tried before", step.memory),
        section("Advice from earlier epochs", step.meta),
        section(f"Trajectories ({len(outcomes)})", "\n\n".join(blocks)),
    ]
    return "\n".join(part for part in parts if part)


def trajectory_block(run: Run, number: int, outcome: Outcome, skill: str) -> str:
    """One scored trajectory: what it is about, how it was judged and why, and every turn."""
    whole = run.whole(outcome)
    lines = [f"### Trajectory {number}: {outcome.task_id}"]
    if outcome.kind:
        lines.append(f"Task type: {outcome.kind}")
    score = outcome.score
    if score is not None:
        lines.append(f"Score: hard {score.hard:g}, soft {score.soft:.2f}")
        if score.feedback:
            lines.append(f"Feedback: {score.feedback}")
    for title, text in run.evidence(whole).items():
        if text.strip():
            lines.append(f"#### {title}\n{text.strip()}")
    lines.append("#### Conversation")
    turns = whole.attempt.trajectory if whole.attempt is not None else ()
    lines += [render_turn(turn, shown(skill)) for turn in turns]
    return "\n".join(lines)


def render_turn(turn: Turn, skill: str) -> str:
    """One turn as text. The skill's own text in a prompt is named, not repeated for each trajectory."""
    content = turn.content
    if skill.strip() and turn.role in ("system", "user"):
        content = content.replace(skill.strip(), "(the current skill)")
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
