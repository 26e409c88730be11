"""The update mode as the kernel uses it: items as JSON, prompts, and one application."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.prompting import resolve_prompts
from skillopt_kernel.records import Edit, EditBudget, Update
from skillopt_update_patch import plugin
from skillopt_update_patch.mode import PatchMode, make_update_mode


def mode() -> PatchMode:
    return make_update_mode(None, DriverContext(logging.getLogger("test")))


class Silent:
    """An optimizer that must not be asked."""

    def ask(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("the mode patch asks nothing")

    ask_json = ask


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.settings) == ("update", "patch", "")
    assert plugin.factory == f"{make_update_mode.__module__}:{make_update_mode.__name__}"


@pytest.mark.parametrize(
    "edit",
    [
        Edit("append", "- a"),
        Edit("delete", "", "- a", occurrence=2),
        Edit("replace", "- b", "- a", 0, "success", "x\n- a", None, 2),
        Edit("insert_after", "- b", "- a", 3, "failure"),
    ],
)
def test_an_item_written_is_read_back(edit: Edit) -> None:
    assert mode().read_item(mode().write_item(edit)) == edit


def test_files_have_the_known_field_names() -> None:
    written = mode().write_item(Edit("replace", "", "- a", 0, "success", merge_level=1))
    assert written == {
        "op": "replace", "content": "", "target": "- a", "support_count": 0, "source_type": "success", "merge_level": 1,
    }  # fmt: skip
    assert mode().write_item(Edit("append", "x")) == {"op": "append", "content": "x"}


def test_what_only_informs_cannot_spoil_an_edit() -> None:
    raw = {"op": "append", "content": "x", "support_count": "many", "source_type": 4, "merge_level": True, "why": "?"}
    assert mode().read_item(raw) == Edit("append", "x")
    assert mode().read_item({"op": "append", "content": "x", "support_count": 2.0}).support == 2
    assert mode().read_item({"op": "delete", "target": "x", "content": None}) == Edit("delete", "", "x")


@pytest.mark.parametrize("raw", [{}, {"op": "append"}, {"op": "x", "content": ""}, [], "append", {"op": ["append"]}])
def test_what_is_no_edit_raises_a_sentence(raw: Any) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        mode().read_item(raw)


def test_a_description_is_one_line_with_nothing_shortened() -> None:
    edit = Edit("replace", "- b\n" * 200 + "é", "- a\n- b", 3, "failure")
    line = mode().describe_item(edit)
    assert "\n" not in line
    assert line.startswith('replace target="- a\\n- b" content="- b\\n')
    assert line.endswith('é" support=3 source=failure')
    assert mode().describe_item(Edit("delete", "", "x")) == 'delete target="x"'


def test_prompts_are_complete_and_use_only_what_they_are_given() -> None:
    assert set(mode().prompts()) == {
        "analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking",
    }  # fmt: skip
    resolved = resolve_prompts({}, None, mode())
    found = {name: resolved[name] for name in mode().prompts()}
    for name, prompt in found.items():
        text = prompt.fill(budget="17", schema='{"op"}', level="1")
        assert "{{" not in text
        assert "one JSON object" in text
        assert ("17" in text) == (not name.startswith("merge"))
        assert ('{"op"}' in text) == (name != "ranking")
        key = "selected_indices" if name == "ranking" else "edits"
        assert f'"{key}"' in text
    for name in ("analyst_failure", "analyst_success"):
        text = found[name].fill(budget="no limit", schema="")
        assert "Edit budget: no limit." in text
        assert '"batch_size"' in text
        assert '"patch"' in text
        assert "exactly once" in text
        assert "protected" in text


def test_application_reports_every_item() -> None:
    update = Update(items=(Edit("append", "- b"), Edit("delete", "", "- x")), over_budget=(Edit("append", "- c"),))
    applied = mode().apply("- a\n", update, EditBudget(2), Silent())
    assert applied.candidate == "- a\n\n- b\n"
    assert [report.status for report in applied.reports] == ["applied", "unmatched", "over_budget"]


def test_a_long_skill_keeps_its_last_line() -> None:  # case O-M3
    skill = (
        "".join(f"- Rule {number}: check the unit of every value.\n" for number in range(700)) + "The very last line.\n"
    )
    assert len(skill) > 30_000
    edits = tuple(
        Edit("replace", f"- Rule {n} is gone.", f"- Rule {n}: check the unit of every value.") for n in (0, 350, 699)
    )
    applied = mode().apply(skill, Update(items=edits), EditBudget(None), Silent())
    assert [report.status for report in applied.reports] == ["applied"] * 3
    assert applied.candidate.endswith("The very last line.\n")
    assert len(applied.candidate.splitlines()) == 701
