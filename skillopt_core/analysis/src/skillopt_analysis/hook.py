"""The hook plugin `data_audit`: no run on data with shortcuts that nobody has looked at."""

from __future__ import annotations

from skillopt_kernel.errors import RefuseRun
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import DriverContext, Run

from skillopt_analysis.auditing import audit_config
from skillopt_analysis.settings import DataAuditSettings


class DataAudit:
    """Audits the data before anything is written or spent."""

    def __init__(self, settings: DataAuditSettings, context: DriverContext) -> None:
        self._acknowledged = settings.acknowledged

    @hookimpl
    def skillopt_configure(self, run: Run) -> None:
        report = audit_config(run.settings)
        if not report.findings:
            return
        told = "\n".join(f"  {one.split}: {one.message}." for one in report.findings)
        if self._acknowledged in ("all", report.name):
            run.logger.warning("data_audit: acknowledged as %s:\n%s", self._acknowledged, told)
            return
        earlier = f" ({self._acknowledged} was acknowledged, which are other findings)" if self._acknowledged else ""
        raise RefuseRun(
            f"the audit of the data has findings{earlier}; a skill could learn these instead of the task:\n{told}\n"
            f'Change the data, or acknowledge them: -o hooks.settings.data_audit.acknowledged={report.name} ("all" '
            f"acknowledges whatever there is)."
        )
