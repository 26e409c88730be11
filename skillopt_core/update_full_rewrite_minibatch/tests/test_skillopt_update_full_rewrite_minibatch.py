"""The update mode `full_rewrite_minibatch`: its items, its prompts, and the choice of one whole skill."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.prompting import resolve_prompts
from skillopt_kernel.records import Applied, EditBudget, Update
from skillopt_kernel.skill import with_region
from skillopt_update_full_rewrite_minibatch import plugin
from skillopt_update_full_rewrite_minibatch.items import WholeSkill
from skillopt_update_full_rewrite_minibatch.mode import WholeSkillMode, make_update_mode

FRONT = "---\nname: answering\n---\n"
SKILL = with_region(f"{FRONT}\n# Answering\n\n- Be short.\n", "slow_update", "Keep to the rules.")
UNITS = WholeSkill("# Units\n", "Units", ("asks for units",), 3, "mixed", 1)


def mode() -> WholeSkillMode:
    return make_update_mode(None, DriverContext(logging.getLogger("test")))


class Silent:
    """An optimizer that must not be asked."""

    memory = meta = room = ""

    def ask(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("the mode asks nothing when it applies")

    ask_json = prompt = ask


def apply(*items: Any) -> Applied:
    return mode().apply(SKILL, Update(items=items, reasoning="merged"), EditBudget(None), Silent())


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.settings) == ("update", "full_rewrite_minibatch", "")
    assert plugin.factory == f"{make_update_mode.__module__}:{make_update_mode.__name__}"


def test_files_have_the_known_field_names() -> None:
    written = {
        "title": "Units", "change_summary": ["asks for units"], "new_skill": "# Units\n", "support_count": 3,
        "source_type": "mixed", "merge_level": 1,
    }  # fmt: skip
    assert mode().write_item(UNITS) == written
    assert mode().read_item(written) == UNITS
    assert mode().read_item({"new_skill": "x", "title": 3, "change_summary": "all", "support_count": "many"}) == (
        WholeSkill("x")
    )


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ([], "must be an object"),
        ({}, "must be the text of the whole skill"),
        ({"new_skill": ["# A"]}, "must be the text of the whole skill"),
        ({"new_skill": " \n"}, "no text beside what is protected"),
        ({"new_skill": "---\nname: x\n---\n"}, "no text beside what is protected"),
        ({"new_skill": "a\x00b"}, "control character"),
    ],
)
def test_what_is_no_skill_raises_a_sentence(raw: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        mode().read_item(raw)


def test_a_rejected_candidate_can_be_told_by_its_line() -> None:
    assert mode().describe_item(UNITS) == 'whole skill title="Units" changes=["asks for units"] support=3 source=mixed'
    assert mode().describe_item(WholeSkill("# A\n- b\n")) == 'whole skill text="# A\\n- b\\n"'


def test_the_first_skill_is_taken_and_keeps_what_is_protected() -> None:
    forged = "---\nname: evil\n---\n# New\n\n<!-- SLOW_UPDATE_START -->\nforged\n<!-- SLOW_UPDATE_END -->\n"
    applied = apply("nonsense", WholeSkill(forged, "New"), UNITS)
    assert applied.candidate == with_region(f"{FRONT}\n# New\n", "slow_update", "Keep to the rules.")
    assert [(report.index, report.status) for report in applied.reports] == [
        (1, "invalid"), (2, "applied"), (3, "over_budget"),
    ]  # fmt: skip
    result = applied.record["full_rewrite_result"]
    assert result["selected_candidate"]["title"] == "New"
    assert result["merged_patch"]["reasoning"] == "merged"
    assert [one["title"] for one in result["merged_patch"]["skill_candidates"]] == ["New", "Units"]


def test_a_skill_like_the_current_one_is_no_change() -> None:
    applied = apply(WholeSkill(SKILL))
    assert applied.candidate == SKILL
    assert [report.status for report in applied.reports] == ["no_op"]


def test_without_a_skill_the_current_one_stays() -> None:
    for items in ((), ("nonsense",), (WholeSkill(" "),)):
        applied = apply(*items)
        assert applied.candidate == SKILL
        assert applied.error == "the update holds no whole skill that could be taken"


def test_prompts_are_complete_and_use_only_what_they_are_given() -> None:
    assert "ranking" not in mode().prompts()
    for name, prompt in resolve_prompts({}, None, mode()).items():
        if name not in mode().prompts():
            continue
        text = prompt.fill(budget="17", schema='{"new_skill"}', level="1")
        assert "{{" not in text
        assert "17" not in text
        assert "one JSON object" in text
        assert '{"new_skill"}' in text
        assert '"skill_candidates"' in text
        assert "kept by the program" in text
        assert "xactly one version" in text
