"""The folders of a job, what is laid into them and what is brought back; the variables; where a program is found."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_lib_agent.environment import NEVER, names_of_variables, variables
from skillopt_lib_agent.finding import find_program
from skillopt_lib_agent.skill_file import place_skill
from skillopt_lib_agent.workspace import collect, fresh_place, lay_files


def test_folders_are_fresh_private_and_gone_at_the_end(tmp_path):
    with fresh_place(tmp_path) as place:
        assert list(place.workspace.iterdir()) == []
        assert stat.S_IMODE(place.root.stat().st_mode) == 0o700
        locked = place.workspace / "locked"
        locked.mkdir()
        (locked / "file").write_text("x", "utf-8")
        (locked / "away").symlink_to(tmp_path)
        locked.chmod(0o500)
        kept = tmp_path / "kept"
        kept.write_text("y", "utf-8")
        (place.workspace / "link").symlink_to(kept)
    assert not place.root.exists()
    assert kept.read_text("utf-8") == "y", "what a link leads to is not deleted"


def test_files_come_from_bytes_and_from_paths(tmp_path):
    (tmp_path / "source.csv").write_bytes(b"1,2")
    lay_files(tmp_path / "in", {"a/b.txt": "ü".encode(), "sheet.csv": tmp_path / "source.csv"})
    assert (tmp_path / "in/a/b.txt").read_text("utf-8") == "ü"
    assert (tmp_path / "in/sheet.csv").read_bytes() == b"1,2"


@pytest.mark.parametrize("name", ["../out.txt", "/etc/passwd", "a/../../b", "", "C:/x", "..\\out.txt"])
def test_no_name_leads_out_of_the_workspace(tmp_path, name):
    with pytest.raises(EnvironmentFailure, match="inside"):
        lay_files(tmp_path / "in", {name: b""})
    with pytest.raises(EnvironmentFailure, match="inside"):
        collect(tmp_path, [name])


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(EnvironmentFailure, match=r"'sheet.csv'.*nowhere"):
        lay_files(tmp_path, {"sheet.csv": tmp_path / "nowhere"})


def test_collected_are_regular_files_in_order_and_no_links(tmp_path):
    work, outside = tmp_path / "work", tmp_path / "outside"
    lay_files(work, {"b.txt": b"b", "deep/a.txt": b"a", "c.md": b"c", ".agents/skills/x/note.txt": b"skill"})
    lay_files(outside, {"secret.txt": b"secret"})
    (work / "link.txt").symlink_to(outside / "secret.txt")
    (work / "away").symlink_to(outside)
    assert collect(work, ["*.txt", "**/*.txt"], [".agents/skills/x"]) == {"b.txt": b"b", "deep/a.txt": b"a"}
    assert collect(work, ["away/*.txt", "nothing"]) == {}


def test_a_job_cannot_bring_back_more_than_is_bearable(tmp_path, monkeypatch):
    monkeypatch.setattr("skillopt_lib_agent.workspace.MOST_FILES", 2)
    lay_files(tmp_path, {f"{number}.txt": b"" for number in range(3)})
    with pytest.raises(EnvironmentFailure, match="narrower"):
        collect(tmp_path, ["*.txt"])


OPERATOR = {
    "PATH": "/usr/bin", "HOME": "/home/me", "OPENAI_API_KEY": "sk-operator", "AWS_SECRET_ACCESS_KEY": "aws",
    "COPILOT_ALLOW_ALL": "true", "IS_SANDBOX": "1", "HTTPS_PROXY": "http://proxy:1", "ANTHROPIC_API_KEY": "ant",
    "LANG": "de_DE.ISO-8859-1", "GIT_CONFIG": "/home/me/.gitconfig", "EMPTY": "",
}  # fmt: skip


def test_variables_are_an_allow_list_with_a_private_home_and_utf8(tmp_path):
    made = variables(tmp_path / "home", tmp_path / "scratch", passed=["ANTHROPIC_API_KEY", "EMPTY"], operator=OPERATOR)
    assert made["PATH"] == "/usr/bin" and made["HTTPS_PROXY"] == "http://proxy:1"
    assert made["ANTHROPIC_API_KEY"] == "ant"
    assert made["HOME"] == str(tmp_path / "home") and made["TMPDIR"] == str(tmp_path / "scratch")
    assert made["XDG_CONFIG_HOME"].startswith(str(tmp_path / "home"))
    assert made["LC_ALL"] == "C.UTF-8"
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GIT_CONFIG", "EMPTY", *NEVER} & set(made)
    assert "/home/me" not in " ".join(made.values())


def test_a_switch_that_allows_everything_is_never_handed_on(tmp_path):
    made = variables(tmp_path, tmp_path, passed=["COPILOT_ALLOW_ALL"], operator=OPERATOR)
    assert "COPILOT_ALLOW_ALL" not in made
    with pytest.raises(ValueError, match="COPILOT_ALLOW_ALL"):
        names_of_variables(None, None, ["COPILOT_ALLOW_ALL"])
    with pytest.raises(ValueError, match="must name"):
        names_of_variables(None, None, ["KEY=value"])


def test_a_skill_becomes_a_file_that_programs_find(tmp_path):
    folder = place_skill(tmp_path, ".agents/skills", "# Counting\n\n- Count twice. 🦉\n")
    text = (tmp_path / folder / "SKILL.md").read_text("utf-8")
    assert folder == ".agents/skills/trained-skill"
    assert text.startswith('---\nname: trained-skill\ndescription: "') and text.endswith(
        "---\n\n# Counting\n\n- Count twice. 🦉\n"
    )


def test_a_skill_s_own_description_is_kept(tmp_path):
    skill = "---\nname: other\ndescription: >\n  Counts: all\n  things.\n---\n# Counting\n"
    text = (tmp_path / place_skill(tmp_path, ".claude/skills", skill) / "SKILL.md").read_text("utf-8")
    assert 'description: "Counts: all things."\n' in text and text.count("name:") == 1


def test_of_a_blank_skill_there_is_no_file(tmp_path):
    assert place_skill(tmp_path, ".agents/skills", "---\nname: x\n---\n \n") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_shim_is_found_by_the_endings_that_windows_adds(tmp_path):
    (tmp_path / "codex").write_text("#!/bin/sh\n", "utf-8")  # npm leaves it beside the shim, for another shell
    (tmp_path / "codex.CMD").write_text("@echo off\n", "utf-8")
    folders, endings = [str(tmp_path / "none"), str(tmp_path)], [".COM", ".EXE", ".CMD"]
    assert find_program("codex", folders, endings) == tmp_path / "codex.CMD"
    assert find_program("codex.CMD", folders, endings) == tmp_path / "codex.CMD"
    assert find_program(str(tmp_path / "codex"), [], endings) == tmp_path / "codex.CMD"
    assert find_program("other", folders, endings) is None


def test_a_program_is_found_by_path_and_by_name(tmp_path, monkeypatch):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n", "utf-8")
    assert find_program("tool", [str(tmp_path)], ()) is None, "it cannot be run"
    program.chmod(0o755)
    assert find_program("tool", [str(tmp_path)], ()) == program
    monkeypatch.chdir(tmp_path)
    assert find_program("./tool", [], ()) == Path.cwd() / "tool"
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep)
    assert find_program("tool") == program
