from typing import ClassVar

from skillopt_testkit import HooksConformance


class TestConformance(HooksConformance):
    name = "skill_aware"


class TestConformanceWithItsOwnSettings(HooksConformance):
    name = "skill_aware"
    options: ClassVar = {"skill_aware_appendix_source": "failure_only", "skill_aware_consolidate_threshold": 3}
