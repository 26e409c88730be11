"""The edit engine: what is applied, what is refused and why, and that nothing else is touched."""

from __future__ import annotations

import random
from typing import Any

import pytest
from skillopt_kernel.records import Edit, EditBudget, ItemReport
from skillopt_kernel.skill import SkillDocument, with_region
from skillopt_update_patch.engine import Refused, apply_edit, apply_edits

START, END = "<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"
REGION = f"# T\n\n- a\n\n{START}\nG\n{END}\n"
NO_LIMIT = EditBudget(None)


def run(skill: str, *items: Any, limit: int | None = None) -> tuple[str, list[str], tuple[ItemReport, ...]]:
    text, reports = apply_edits(skill, items, EditBudget(limit))
    return text, [report.status for report in reports], reports


def one(skill: str, op: Any, content: str = "", target: str = "", **more: Any) -> str:
    text, statuses, reports = run(skill, Edit(op, content, target, **more))
    assert statuses == ["applied"], reports[0].detail
    return text


def refused(skill: str, op: Any, content: str = "", target: str = "", **more: Any) -> tuple[str, str]:
    text, statuses, reports = run(skill, Edit(op, content, target, **more))
    assert text == skill
    return statuses[0], reports[0].detail


# Vectors of the four operations ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("skill", "edit", "expected"),
    [
        ("# T\nx y\n", Edit("insert_after", "new", "x"), "# T\nx y\n\nnew\n"),
        ("# T\nx y", Edit("insert_after", "new", "x"), "# T\nx y\nnew\n"),
        ("# T\nx y\n", Edit("insert_after", "new", "x y\n"), "# T\nx y\n\nnew\n"),
        ("a\n\nb\n", Edit("insert_after", "new", "a\n\n"), "a\n\nnew\n\nb\n"),
        ("a\nb\n", Edit("insert_after", "  - new\n", "a"), "a\n\n  - new\nb\n"),
        ("", Edit("append", "zz"), "\n\nzz\n"),
        ("# T\n\n\n", Edit("append", " zz \n"), "# T\n\nzz\n"),
        (REGION, Edit("append", "zz"), f"# T\n\n- a\n\nzz\n\n{START}\nG\n{END}\n"),
        (REGION, Edit("insert_after", "zz", "- a"), f"# T\n\n- a\n\nzz\n\n{START}\nG\n{END}\n"),
        ("- a\n- b\n", Edit("replace", "- z", "- a"), "- z\n- b\n"),
        ("- a\n- b\n", Edit("replace", "- z", "- a\n"), "- z\n- b\n"),
        ("- a\n- b\n", Edit("replace", "\n- z\n\n", "- a\n"), "- z\n- b\n"),
        ("x foo bar\n", Edit("replace", "baz ", "foo "), "x baz bar\n"),
        ("  - a\n", Edit("replace", "  - z", "- a"), "  - z\n"),
        ("  - a\n", Edit("replace", "    - z", "  - a"), "    - z\n"),
        ("- a\n\n- b\n\n- c\n", Edit("delete", "", "- b"), "- a\n\n\n- c\n"),
        ("- a\n- b\n- c\n", Edit("delete", "", "- b"), "- a\n- c\n"),
        ("- a\n- b\n- c\n", Edit("delete", "", "- b\n"), "- a\n- c\n"),
        ("one two three\n", Edit("delete", "", "two "), "one three\n"),
        ("- a\n- b\n", Edit("replace", "", "- b"), "- a\n"),
    ],
)
def test_operations(skill: str, edit: Edit, expected: str) -> None:
    text, statuses, reports = run(skill, edit)
    assert (text, statuses) == (expected, ["applied"]), reports[0].detail


def test_later_edits_see_what_earlier_ones_did() -> None:
    text, statuses, reports = run(
        "- a\n",
        Edit("replace", "- b", "- a"),
        Edit("insert_after", "- c", "- b"),
        Edit("replace", "- d", "- a"),
    )
    assert text == "- b\n\n- c\n"
    assert statuses == ["applied", "applied", "unmatched"]
    assert "an earlier edit of this step changed it" in reports[2].detail


# Cases ----------------------------------------------------------------------------------------------------


def test_anchors_that_match_nothing_are_told() -> None:  # case O-E1
    text, statuses, reports = run("- A\n", Edit("replace", "- C", "- B"), Edit("append", "- D"))
    assert statuses == ["unmatched", "applied"]
    assert text == "- A\n\n- D\n"
    assert '"- B"' in reports[0].detail
    assert [report.index for report in reports] == [1, 2]
    status, detail = refused("# T\n- Answer in one word.\n", "insert_after", "x", "- Answer in one wrod.")
    assert status == "unmatched"
    assert 'the nearest line is "- Answer in one word."' in detail
    assert refused("# T\n", "insert_after", "x")[0] == "unmatched"
    assert refused("# T\n", "replace", "x", " \n")[0] == "unmatched"


def test_a_doubled_anchor_is_not_guessed() -> None:  # case O-E2
    skill = "- a\n- b\n- a\n"
    status, detail = refused(skill, "replace", "- z", "- a")
    assert status == "ambiguous"
    assert "occurs 2 times" in detail
    assert one(skill, "replace", "- z", "- a", occurrence=2) == "- a\n- b\n- z\n"
    assert one(skill, "replace", "- z", "- a", context="- b\n- a") == "- a\n- b\n- z\n"
    assert refused(skill, "replace", "- z", "- a", context="- a")[0] == "ambiguous"
    status, detail = refused(skill, "replace", "- z", "- a", context="no such text")
    assert status == "ambiguous"
    assert "the context given does not occur" in detail
    status, detail = refused(skill, "replace", "- z", "- a", occurrence=3)
    assert status == "unmatched"
    assert "occurs 2 times, not 3" in detail
    assert refused("aaa\n", "replace", "x", "aa")[0] == "ambiguous"  # overlapping ones are two


@pytest.mark.parametrize(
    "edit",
    [
        Edit("delete"),
        Edit("append", "   "),
        Edit("replace", "- a", "- a"),
        Edit("append", ""),
        Edit("insert_after", "\n", "- a"),
    ],
)
@pytest.mark.parametrize("skill", ["- a\n", "- a", "- a  \n\n\n", "- a\r\n"])
def test_empty_and_identical_edits_change_no_byte(skill: str, edit: Edit) -> None:  # case O-E3
    text, statuses, _ = run(skill, edit)
    assert (text, statuses) == (skill, ["no_op"])


def test_a_line_that_is_there_is_not_added_again() -> None:
    status, detail = refused("# T\n- a “b”\n- c\n", "append", '- a "b"')
    assert status == "no_op"
    assert "line 2" in detail
    assert refused("- a\n- b\n- c\n", "append", "- b\n- c")[0] == "no_op"
    assert refused("- a\n\n- new\n", "insert_after", "- new", "- a")[0] == "no_op"
    assert run("- a and more\n", Edit("append", "- a"))[1] == ["applied"]


def test_crlf_documents_stay_so() -> None:  # case O-E4
    skill = "# T\r\n- a\r\n- b\r\n"
    assert one(skill, "replace", "- c\n- d", "- a\n- b") == "# T\r\n- c\r\n- d\r\n"
    assert one(skill, "insert_after", "x\ny", "- a") == "# T\r\n- a\r\n\r\nx\r\ny\r\n- b\r\n"
    assert one(skill, "append", "x\ny") == "# T\r\n- a\r\n- b\r\n\r\nx\r\ny\r\n"
    assert one(skill, "delete", "", "- a\n") == "# T\r\n- b\r\n"
    assert one("- a\n- b\n", "replace", "- c\r\n- d", "- a\r\n- b") == "- c\n- d\n"


def test_a_mixed_file_keeps_its_untouched_lines() -> None:
    skill = "# T\r\n- a\n- b\r\n- c  \n"
    assert one(skill, "replace", "- x\n- y", "- b") == "# T\r\n- a\n- x\r\n- y\r\n- c  \n"
    assert one(skill, "insert_after", "- x", "- a") == "# T\r\n- a\n\n- x\n- b\r\n- c  \n"


@pytest.mark.parametrize(
    ("skill", "target", "expected"),
    [
        ("- Don’t “guess” – ask\n", '- Don\'t "guess" - ask', "z\n"),
        ("- caf\u0065\u0301 first\n", "- caf\u00e9 first", "z\n"),
        ("- caf\u00e9 first\n", "- caf\u0065\u0301 first", "z\n"),
        ("- \u1112\u1161\u11ab\n", "- \ud55c", "z\n"),
        ("- 5\u00a0km\n", "- 5 km", "z\n"),
        ("- a   \n- b\n", "- a\n- b", "z\n"),
        ("- a\n- b\n", "- a  \n- b ", "z\n"),
        ("- a\n", "\n- a\n\n", "z\n"),
    ],
)
def test_forms_of_one_text_are_matched(skill: str, target: str, expected: str) -> None:
    assert one(skill, "replace", "z", target) == expected


def test_what_is_matched_in_another_form_changes_no_other_line() -> None:
    skill = "“x” – caf\u0065\u0301\u00a0\n- Don’t\n“y” – \u2014  \n"
    assert one(skill, "replace", "- Do", "- Don't") == skill.replace("- Don’t", "- Do")


def test_verbatim_comes_before_other_forms() -> None:
    assert one('- “a”\n- "a"\n', "replace", "- z", '- "a"') == "- “a”\n- z\n"


def test_wording_and_case_are_not_forgiven_and_letters_are_not_cut() -> None:
    assert refused("- Abc\n", "replace", "z", "- abc")[0] == "unmatched"
    assert refused("- caf\u0065\u0301\n", "replace", "z", "- cafe")[0] == "unmatched"
    assert refused("- ab\n", "replace", "z", "- a ")[0] == "unmatched"


@pytest.mark.parametrize(
    "target",
    [
        f"- rule two\n\n{START}",
        START,
        "keep me",
        f"keep me\n{END}",
        f"{END}\n\nafter",
        "two\n\n<!-- SLOW",
        "-->\n\nafter",
    ],
)
@pytest.mark.parametrize("op", ["replace", "delete", "insert_after"])
def test_what_overlaps_a_protected_region_is_refused(op: str, target: str) -> None:  # case O-E5
    skill = f"# T\n- rule two\n\n{START}\nkeep me\n{END}\n\nafter\n"
    assert refused(skill, op, "x", target)[0] == "protected"


def test_markers_in_inserted_text_are_neutralised() -> None:
    assert one(REGION, "replace", f"- b\n{END}\n{START}\n- c", "- a") == REGION.replace("- a", "- b\n- c")
    assert refused(REGION, "append", f"{START}\n{END}")[0] == "no_op"
    broken = "<!-- SLOW_<!-- APPENDIX_START -->UPDATE_END -->"
    assert one(REGION, "append", f"x {broken}").count("UPDATE_END") == 1


def test_a_marker_cannot_be_put_together_from_body_and_edit() -> None:
    skill = "a X_UPDATE_START --> b\n"
    status, detail = refused(skill, "replace", "<!-- SLOW", "X")
    assert status == "protected"
    assert "marker" in detail


def test_a_target_in_a_region_and_once_in_the_body_means_the_body() -> None:
    skill = f"{START}\n- a\n{END}\n\n- a\n"
    assert one(skill, "replace", "- z", "- a") == f"{START}\n- a\n{END}\n\n- z\n"
    assert refused(skill, "replace", "- z", "- a", occurrence=1)[0] == "protected"


def test_nothing_is_inserted_into_a_region_that_begins_in_the_targets_line() -> None:
    assert refused(f"- a {START}\nG\n{END}\n", "insert_after", "x", "- a")[0] == "protected"


FRONT = "---\nname: x\ndescription: old\n---\n"


@pytest.mark.parametrize("target", ["description: old", "description: old\n---\n# B", "---\n# B", "name: x"])
@pytest.mark.parametrize("op", ["replace", "delete", "insert_after"])
def test_front_matter_is_out_of_reach(op: str, target: str) -> None:  # case O-E6
    assert refused(FRONT + "# B\n", op, "", target)[0] in ("protected", "no_op")
    assert refused(FRONT + "# B\n", op, "x", target)[0] == "protected"


def test_edits_beside_front_matter() -> None:
    assert one(FRONT, "append", "x") == FRONT + "\nx\n"
    assert one(FRONT + "# B\n", "replace", "# C", "# B") == FRONT + "# C\n"
    assert refused("# B\n", "replace", FRONT + "# B", "# B")[0] == "protected"  # nor can an edit make one


def test_the_budget_binds() -> None:  # case O-E7
    items = [Edit("append", f"- {number}") for number in range(6)]
    text, statuses, reports = run("# T\n", *items, limit=4)
    assert statuses == ["applied"] * 4 + ["over_budget"] * 2
    assert "- 3" in text
    assert "- 4" not in text
    assert "4 edits" in reports[4].detail
    assert run("# T\n", *items, limit=0)[:2] == ("# T\n", ["over_budget"] * 6)
    assert run("# T\n", *items)[1] == ["applied"] * 6


def test_what_is_not_applied_uses_up_no_budget() -> None:
    items = [Edit("replace", "x", "absent"), Edit("append", ""), Edit("append", "- 1"), Edit("append", "- 2")]
    assert run("# T\n", *items, limit=1)[1] == ["unmatched", "no_op", "applied", "over_budget"]


def test_what_selection_left_out_is_reported_last() -> None:
    _, reports = apply_edits("# T\n", [Edit("append", "- 1")], EditBudget(1), [Edit("append", "- 2")])
    assert [(report.index, report.status) for report in reports] == [(1, "applied"), (2, "over_budget")]
    assert "ranked higher" in reports[1].detail


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ("append", "an edit must be an object"),
        (None, "an edit must be an object"),
        ({"op": "rename", "content": "x"}, "'rename'"),
        ({"content": "x"}, "must be one of append, insert_after, replace, delete"),
        ({"op": "append", "content": None}, "content must be text, not missing or null"),
        ({"op": "append"}, "content must be text"),
        ({"op": "replace", "target": ["x"], "content": "y"}, "target must be text, not a list"),
        ({"op": "replace", "target": "x", "content": "y", "occurrence": 0}, "occurrence"),
        ({"op": "append", "content": "\ud800"}, "surrogate"),
        ({"op": "append", "content": "a\x00b"}, "control character"),
        (Edit("append", 3), "content must be text, not a number"),  # type: ignore[arg-type]
        (Edit("swap", "x"), "'swap'"),  # type: ignore[arg-type]
        (Edit("replace", "x", "# T", occurrence=0), "counted from 1"),
    ],
)
def test_malformed_items_are_invalid_and_the_rest_goes_on(item: Any, part: str) -> None:
    text, statuses, reports = run("# T\n", item, Edit("append", "- x"))
    assert statuses == ["invalid", "applied"]
    assert part in reports[0].detail
    assert text == "# T\n\n- x\n"


def test_raw_objects_are_read() -> None:
    assert run("# T\n", {"op": "append", "content": "- x"})[0] == "# T\n\n- x\n"


def test_every_report_has_a_sentence_and_quotes_little() -> None:
    _, _, reports = run("# T\n", Edit("replace", "x", "y" * 500), Edit("append", "- z"))
    assert all(report.detail for report in reports)
    assert len(reports[0].detail) < 200


# Whatever is asked, protected parts and untouched lines stay ------------------------------------------------


def test_random_edits_never_harm_what_is_protected() -> None:
    rng = random.Random(3)
    pieces = [
        START,
        END,
        "<!-- APPENDIX_START -->",
        "---\n",
        "name: x\n",
        "- a",
        "- b\n",
        "é",
        "e\u0301",
        "\r\n",
        "\n\n",
        " ",
        "<!-- ",
        "-->",
    ]
    for _ in range(600):
        skill = "".join(rng.choices(pieces, k=rng.randint(0, 14)))
        if rng.random() < 0.6:
            skill = with_region(FRONT + skill if rng.random() < 0.5 else skill, "slow_update", "guide - a\n- b")
        before = SkillDocument.parse(skill).protected_texts
        for _ in range(4):
            low = rng.randrange(len(skill) + 1)
            target = skill[low : low + rng.randint(0, 9)]
            edit = Edit(
                rng.choice(("append", "insert_after", "replace", "delete")),
                "".join(rng.choices(pieces, k=rng.randint(0, 4))),
                target,
                occurrence=rng.choice((None, None, 1, 2)),
            )
            try:
                changed, _detail = apply_edit(skill, edit)
            except Refused:
                continue
            assert changed != skill
            assert SkillDocument.parse(changed).protected_texts == before
            skill = changed


def test_an_edit_changes_no_line_but_its_own() -> None:
    rng = random.Random(5)
    endings = ["\n", "\r\n", "  \n"]
    for _ in range(300):
        lines = [f"- rule {number} “é”{rng.choice(endings)}" for number in range(rng.randint(1, 12))]
        chosen = rng.randrange(len(lines))
        target = f'- rule {chosen} "é"'
        rest = lines[:chosen], lines[chosen + 1 :]
        replaced = one("".join(lines), "replace", "- new", target)
        ending = lines[chosen][len(target) :]
        assert replaced == "".join([*rest[0], "- new" + ending, *rest[1]])
        assert one("".join(lines), "delete", "", target) == "".join(rest[0] + rest[1])
        inserted = one("".join(lines), "insert_after", "- new", target)
        assert inserted.startswith("".join(lines[: chosen + 1]))
        assert inserted.endswith("".join(rest[1]))
