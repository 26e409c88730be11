"""Update: apply the selected items by the update mode that the configuration names."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import Applied, Update


@hookimpl(trylast=True)
def skillopt_update(run: Run, step: Step, update: Update, skill: str) -> Applied:
    return run.apply(skill, update, step.enforced_budget)
