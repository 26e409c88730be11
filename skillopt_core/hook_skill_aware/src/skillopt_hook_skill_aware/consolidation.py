"""Consolidation: one optimizer call that merges notes which say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.errors import ModelError
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.evidence import section

from skillopt_hook_skill_aware.notes import read_notes

STAGE = "appendix_consolidate"
MAX_TOKENS = 4096


def consolidated(run: Run, step: Step, notes: tuple[str, ...], prompt: str) -> tuple[str, ...]:
    """Fewer notes that say the same, or `notes` as they are where the reply has none or not fewer.

    A failed call changes nothing and is counted with the step.
    """
    lines = "\n".join(f"- {note}" for note in notes)
    user = section(f"Notes to consolidate ({len(notes)})", lines)
    try:
        reply = run.optimizer(STAGE).ask_json(prompt, user, check=_problem, max_tokens=MAX_TOKENS)
    except ModelError as error:
        step.call_failures.append(failure_sentence(error))
        return notes
    merged = read_notes(reply)
    return merged if len(merged) < len(notes) else notes


def _problem(reply: Mapping[str, Any]) -> str | None:
    return None if read_notes(reply) else '"appendix_notes" must be a list of texts, with at least one'
