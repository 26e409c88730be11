"""The settings of the hook plugin `skill_aware`."""

from __future__ import annotations

from typing import Literal

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option


@frozen
class SkillAwareSettings:
    """Whose reminders are kept, and when they are merged."""

    skill_aware_appendix_source: Literal["both", "failure_only"] = option("both", "whose notes enter the appendix")
    skill_aware_consolidate_threshold: int = option(
        0, "with more notes than this, one call merges what says the same; 0: never", at_least(0)
    )
