"""Edit budget: ask the scheduler that the configuration names."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import EditBudget, Update


@hookimpl(trylast=True)
def skillopt_edit_budget(run: Run, step: Step, update: Update | None) -> EditBudget:
    return run.scheduled_budget(step, update)
