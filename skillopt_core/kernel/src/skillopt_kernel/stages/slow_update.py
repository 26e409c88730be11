"""Slow update: guidance for the target, written from a comparison of this epoch's skill with the one before."""

from __future__ import annotations

from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Epoch, Optimizer, Run
from skillopt_kernel.records import SlowUpdate
from skillopt_kernel.skill import region
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.comparison import Comparison, Details, ask_about, compare, details_in
from skillopt_kernel.stages.evidence import joined, section, skill_section


@hookimpl(trylast=True)
def skillopt_slow_update(run: Run, epoch: Epoch) -> SlowUpdate:
    comparison = compare(run, epoch)
    if not comparison.pairs:
        return SlowUpdate(None, record=comparison.record())
    optimizer, system = run.optimizer("slow_update"), run.prompt("slow_update")
    guidance, room = region(comparison.current, "slow_update"), run.room(comparison.current)
    try:
        return ask_for_guidance(optimizer, system, comparison, guidance, details_in(run, comparison), room)
    except ModelError as error:
        return SlowUpdate(None, comparison.rows(), comparison.record() | {"error": failure_sentence(error)})


def ask_for_guidance(
    optimizer: Optimizer, system: str, comparison: Comparison, guidance: str, details: Details, room: str = ""
) -> SlowUpdate:
    """What one optimizer call makes of the comparison and of the `guidance` that it may replace.

    room: how much may be added to the skill, "" where its length is not limited.
    Raises `ModelError` when there is no usable reply.
    """

    def message(text: str) -> str:
        return joined(
            skill_section(comparison.previous, "Previous skill"),
            skill_section(comparison.current),
            section("Room left", room),
            section("Previous guidance", guidance or "(There is none yet.)"),
            section("Comparison", text),
        )

    reply = ask_about(optimizer, system, "slow_update_content", comparison, message, details)
    record = comparison.record() | {"reasoning": str(reply.get("reasoning") or "")}
    return SlowUpdate(reply["slow_update_content"].strip() or None, comparison.rows(), record)
