"""Slow update: guidance for the target, written from a comparison of this epoch's skill with the one before."""

from __future__ import annotations

from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Epoch, Run
from skillopt_kernel.records import SlowUpdate
from skillopt_kernel.skill import region
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.comparison import Comparison, ask_about, compare
from skillopt_kernel.stages.evidence import joined, section, skill_section


@hookimpl(trylast=True)
def skillopt_slow_update(run: Run, epoch: Epoch) -> SlowUpdate:
    comparison = compare(run, epoch)
    pairs = tuple(pair.as_json() for pair in comparison.pairs)
    record = comparison.record()
    if not pairs:
        return SlowUpdate(None, record=record)
    try:
        reply = ask_about(run, "slow_update", comparison, lambda text: message(comparison, text))
    except ModelError as error:
        return SlowUpdate(None, pairs, record | {"error": failure_sentence(error)})
    record["reasoning"] = str(reply.get("reasoning") or "")
    return SlowUpdate(reply["slow_update_content"].strip() or None, pairs, record)


def message(comparison: Comparison, text: str) -> str:
    """What the optimizer is shown: both skills, the guidance that it may replace, and what they led to."""
    guidance = region(comparison.current, "slow_update")
    return joined(
        skill_section(comparison.previous, "Previous skill"),
        skill_section(comparison.current),
        section("Previous guidance", guidance or "(There is none yet.)"),
        section("Comparison", text),
    )
