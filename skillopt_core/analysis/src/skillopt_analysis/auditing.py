"""The audit of a configuration's data: every check on every split."""

from __future__ import annotations

import logging

from skillopt_kernel.config import Config
from skillopt_kernel.loop.preparing import make_environment
from skillopt_kernel.records import Splits
from skillopt_kernel.splits import PARTS

from skillopt_analysis.answers import answer_findings
from skillopt_analysis.finding import Report
from skillopt_analysis.options import option_findings
from skillopt_analysis.repeats import repeat_findings


def audit_config(config: Config) -> Report:
    """Audit all tasks that the configured environment loads. No model is asked.

    Raises `ConfigError` and `DataError` as a run would.
    """
    return audit_splits(make_environment(config, logging.getLogger("skillopt")).splits())


def audit_splits(splits: Splits) -> Report:
    """Audit these splits: first what each holds, then what is there twice."""
    found = []
    for part in PARTS:
        tasks = getattr(splits, part)
        found += [*option_findings(part, tasks), *answer_findings(part, tasks)]
    return Report({part: len(getattr(splits, part)) for part in PARTS}, (*found, *repeat_findings(splits)))
