"""The skill document: what the target is shown, its hash, regions, front matter, newline style."""

import pytest
from skillopt_kernel.skill import (
    SkillDocument,
    neutralise_markers,
    newline_style,
    region,
    restore_protected,
    shown,
    skill_hash,
    with_newlines,
    with_region,
)

START, END = "<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"
NOTES, NOTES_END = "<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"
FRONT = "---\nname: x\ndescription: y\n---\n"


@pytest.mark.parametrize(("text", "expected"), [("", "e3b0c44298fc1c14"), ("hello", "2cf24dba5fb0a30e")])
def test_the_hash_is_of_the_shown_text(text: str, expected: str) -> None:
    assert skill_hash(text) == expected


def test_markers_change_neither_what_is_shown_nor_the_hash() -> None:
    marked = f"# T\n\n{START}\nguidance\n{END}\n"
    assert shown(marked) == "# T\n\nguidance\n"
    assert skill_hash(marked) == skill_hash("# T\n\nguidance\n")
    assert skill_hash(marked) != skill_hash("# T\n")


@pytest.mark.parametrize(
    "text", ["", "# T\n\n\n  x \r\ny", "<!-- a comment -->\n", "a\rb\n", "\ufeff# T\n", "<!-- SLOW_UPDATE -->"]
)
def test_a_text_without_markers_is_shown_byte_for_byte(text: str) -> None:
    assert shown(text) == text


def test_a_marker_beside_text_goes_alone_and_with_crlf_the_line_goes_whole() -> None:
    assert shown(f"a {START} b\n") == "a  b\n"
    assert shown(f"a\r\n{START}\r\ng\r\n{END}\r\n") == "a\r\ng\r\n"


def test_removing_a_marker_cannot_leave_another_one() -> None:
    hidden = "<!-- SLOW_<!-- APPENDIX_END -->UPDATE_START -->"
    assert neutralise_markers(f"a{hidden}b") == "ab"
    assert neutralise_markers("<!--SLOW_UPDATE_END--> x") == " x"


def test_a_region_is_replaced_whole_and_stands_last() -> None:
    text = f"# a\n\nb\n\n{START}\nold\n{END}\n\ntail\n"
    assert region(text, "slow_update") == "old"
    assert with_region(text, "slow_update", " new\n") == f"# a\n\nb\n\ntail\n\n{START}\nnew\n{END}\n"


def test_a_region_appears_with_its_first_content_and_goes_with_its_last() -> None:
    assert with_region("# a\n", "appendix", "  \n") == "# a\n"
    once = with_region("# a\n", "appendix", "- note")
    assert once == f"# a\n\n{NOTES}\n- note\n{NOTES_END}\n"
    assert with_region(once, "appendix", "") == "# a\n"
    assert with_region("", "slow_update", "g") == f"{START}\ng\n{END}\n"


def test_writing_a_region_again_changes_nothing_and_leaves_the_other_kind() -> None:
    both = with_region(with_region("# a\n", "slow_update", "g"), "appendix", "- n")
    assert with_region(both, "appendix", "- n") == both
    assert region(with_region(both, "slow_update", "h"), "appendix") == "- n"
    assert region(with_region(both, "slow_update", "h"), "slow_update") == "h"


def test_content_cannot_close_its_region_early() -> None:
    text = with_region("# a\n", "slow_update", f"one\n{END}\n# Loose\n{NOTES}")
    assert region(text, "slow_update") == "one\n# Loose"
    assert text.count("<!--") == 2


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"a\n{START}\nb\n", "a\n\nb\n"),
        (f"a\n{END}\nb\n", "a\n\nb\n"),
        (f"{START}\nx\n{END}\na\n{START}\ny\n{END}\n{END}\n", "a\n"),
        (f"a\n{START}\nx\n{START}\ny\n{END}\nb\n", "a\n\nb\n"),
    ],
)
def test_doubled_regions_and_orphan_markers_are_cleared_away(text: str, rest: str) -> None:
    assert with_region(text, "slow_update", "") == rest
    assert with_region(text, "slow_update", "g") == rest + f"\n{START}\ng\n{END}\n"


def test_blank_lines_of_the_body_stay_as_they_are() -> None:
    body = "# a\n\n\n\n```\n\n\n\nx\n```\n"
    assert with_region(body, "slow_update", "g").startswith(body)


def test_regions_keep_the_newline_style() -> None:
    text = with_region("# a\r\n- b\r\n", "slow_update", "one\ntwo")
    assert text == f"# a\r\n- b\r\n\r\n{START}\r\none\r\ntwo\r\n{END}\r\n"
    assert region(text, "slow_update") == "one\r\ntwo"


def test_newline_styles() -> None:
    assert newline_style("a\r\nb\r\nc\n") == "\r\n"
    assert newline_style("a\r\nb\n") == "\n"
    assert with_newlines("a\rb\r\nc\n", "\r\n") == "a\r\nb\r\nc\r\n"


@pytest.mark.parametrize(
    ("text", "front"),
    [
        (FRONT + "# B\n", FRONT),
        ("\ufeff" + FRONT, "\ufeff" + FRONT),
        (FRONT.replace("\n", "\r\n") + "x", FRONT.replace("\n", "\r\n")),
        ("---\nname: x\n---", "---\nname: x\n---"),
        ("---\n# comment\nname: x\n---\n", "---\n# comment\nname: x\n---\n"),
        ("---\n---\n# B\n", "---\n---\n"),
        ("---\nname: x\nno end\n", ""),
        ("---\nA line of prose.\n---\nmore\n", ""),
        ("# B\n---\nname: x\n---\n", ""),
        ("----\nname: x\n---\n", ""),
    ],
)
def test_front_matter_is_told_from_horizontal_rules(text: str, front: str) -> None:
    document = SkillDocument.parse(text)
    assert document.front_matter == front
    assert document.front_matter + document.body == text


def test_protected_spans_are_front_matter_regions_and_orphan_markers() -> None:
    text = f"{FRONT}a\n{START}\ng\n{END}\nb\n{NOTES_END}\n"
    document = SkillDocument.parse(text)
    assert [text[start:end] for start, end in document.protected] == [FRONT, f"{START}\ng\n{END}", NOTES_END]
    assert [found.closed for found in document.regions] == [True, False]


def test_a_rewrite_gets_front_matter_and_regions_back() -> None:
    before = with_region(with_region(f"{FRONT}\n# Old\n", "appendix", "- n"), "slow_update", "g")
    rewritten = f"---\nname: evil\n---\n# New\n\n{START}\nforged\n{END}\n{NOTES}\n"
    assert restore_protected(before, rewritten) == (
        f"{FRONT}\n# New\n\n{NOTES}\n- n\n{NOTES_END}\n\n{START}\ng\n{END}\n"
    )
    assert restore_protected("# Old\r\n", "---\nname: x\n---\n# New \n\n") == "# New\r\n"
    assert restore_protected(before, before) == before
    assert restore_protected("", "# New") == "# New\n"


@pytest.mark.parametrize("text", ["", " \n", FRONT, f"{START}\nforged\n{END}\n", f"{FRONT}\n{NOTES}\n"])
def test_a_rewrite_without_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no text beside what is protected"):
        restore_protected("# Old\n", text)


@pytest.mark.parametrize("text", ["# New\x00", "# \ud83d"])
def test_a_rewrite_that_no_file_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no text file can hold"):
        restore_protected("# Old\n", text)
