"""Gate: ask the gate that the configuration names."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run
from skillopt_kernel.records import Applied, GateDecision, Scored


@hookimpl(trylast=True)
def skillopt_gate(run: Run, applied: Applied, current: Scored, best: Scored) -> GateDecision:
    return run.judge(applied, current, best)
