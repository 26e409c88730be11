"""Meta skill: advice to the optimizer itself, for all that it is asked in the following epochs."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Epoch, Optimizer, Run
from skillopt_kernel.stages.comparison import Comparison, Details, ask_about, compare, details_in
from skillopt_kernel.stages.evidence import joined, section, skill_section


@hookimpl(trylast=True)
def skillopt_meta_skill(run: Run, epoch: Epoch) -> str | None:
    comparison = compare(run, epoch)  # the pairs of the slow update, if there was one: they are in the store
    if not comparison.pairs:
        return None
    run.write("comparison_pairs.json", list(comparison.rows()))
    optimizer, system = run.optimizer("meta_skill"), run.prompt("meta_skill")
    return ask_for_advice(optimizer, system, comparison, epoch.meta, epoch.memory, details_in(run, comparison))


def ask_for_advice(
    optimizer: Optimizer, system: str, comparison: Comparison, advice: str, memory: str, details: Details
) -> str:
    """What one optimizer call makes of the comparison, of the `advice` so far and of what was tried (`memory`).

    Raises `ModelError` when there is no usable reply.
    """

    def message(text: str) -> str:
        return joined(
            skill_section(comparison.previous, "Previous skill"),
            skill_section(comparison.current),
            section("Advice from earlier epochs", advice or "(There is none yet.)"),
            section("What was tried before", memory),
            section("Comparison", text),
        )

    reply = ask_about(optimizer, system, "meta_skill_content", comparison, message, details)
    return str(reply["meta_skill_content"]).strip()
