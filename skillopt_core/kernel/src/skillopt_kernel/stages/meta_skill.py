"""Meta skill: advice to the optimizer itself, for all that it is asked in the following epochs."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Epoch, Run
from skillopt_kernel.stages.comparison import Comparison, ask_about, compare
from skillopt_kernel.stages.evidence import joined, section, skill_section


@hookimpl(trylast=True)
def skillopt_meta_skill(run: Run, epoch: Epoch) -> str | None:
    comparison = compare(run, epoch)  # the pairs of the slow update, if there was one: they are in the store
    if not comparison.pairs:
        return None
    reply = ask_about(run, "meta_skill", comparison, lambda text: message(epoch, comparison, text))
    return str(reply["meta_skill_content"]).strip()


def message(epoch: Epoch, comparison: Comparison, text: str) -> str:
    """What the optimizer is shown: both skills, the advice so far, what was tried, and what it led to."""
    return joined(
        skill_section(comparison.previous, "Previous skill"),
        skill_section(comparison.current),
        section("Advice from earlier epochs", epoch.meta or "(There is none yet.)"),
        section("What was tried before", epoch.memory),
        section("Comparison", text),
    )
