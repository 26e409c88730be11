from typing import ClassVar

from skillopt_testkit import HooksConformance


class TestConformance(HooksConformance):
    name = "semantic_density"


class TestConformanceWithAListOfItsOwn(HooksConformance):
    name = "semantic_density"
    options: ClassVar = {"semantic_density_weight": 2, "leading_words": "must, Rule"}
    skills: ClassVar = (*HooksConformance.skills, "<!-- APPENDIX_START -->" * 500, "MUST")
