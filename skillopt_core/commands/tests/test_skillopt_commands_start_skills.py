"""The skill to start from: its folder, and the warning that there is nothing in it."""

from pathlib import Path

import pytest
from skillopt_commands.start_skills import is_blank, skill_file


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff", "---\nname: x\n---\n", "---\r\nname: x\r\n---\r\n \r\n"])
def test_nothing_below_the_front_matter_is_blank(text):
    assert is_blank(text.removeprefix("\ufeff"))


@pytest.mark.parametrize("text", ["# A", "---\nname: x\n---\nRead.\n", "---\nname: x\n"])
def test_what_says_something_is_not(text):
    assert not is_blank(text)


def test_a_folder_stands_for_the_agent_skill_in_it(tmp_path, monkeypatch):
    skill = tmp_path / "receipts" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("# A\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert skill_file("receipts") == Path("receipts", "SKILL.md")
    assert skill_file("~/receipts") == Path("~/receipts/SKILL.md")
    assert skill_file(skill) == skill
    assert skill_file("none") == Path("none")
    assert skill_file(tmp_path) == tmp_path, "a run directory, or a folder that is told to be none"
