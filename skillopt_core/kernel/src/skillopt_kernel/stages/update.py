"""Update: apply the selected items by the update mode that the configuration names."""

from __future__ import annotations

import attrs

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import Applied, Update


@hookimpl(trylast=True)
def skillopt_update(run: Run, step: Step, update: Update, skill: str) -> Applied:
    applied = run.apply(skill, update, step.enforced_budget)
    aside = [attrs.evolve(one, index=len(applied.reports) + at) for at, one in enumerate(update.set_aside, 1)]
    return attrs.evolve(applied, reports=(*applied.reports, *aside))
