"""Which files belong to a scorer, so that a run is not taken up again with other ones."""

import sys

import pytest
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_scorers.settings import CommandSettings, JsonSettings, JudgeSettings, PythonSettings
from skillopt_scorers.sources import sources_of


@pytest.fixture
def lab(tmp_path):
    """A module that imports two others, a package, one that nobody imports, and one that is no Python."""
    for name, text in {
        "mine.py": "import json, parts\nfrom lab.deep import one\ndef score(): pass\n",
        "parts.py": "import mine\nfrom words import some\n",
        "words.py": "some = 1\n",
        "other.py": "",
        "broken.py": "def (:",
        "lab/__init__.py": "",
        "lab/deep.py": "from . import aside\none = 1\n",
        "lab/aside.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(lab, function, folders=None):
    return [path.relative_to(lab).as_posix() for path in sources_of(function, folders or (lab,))]


def test_a_function_and_what_it_imports_from_its_folders(lab):
    assert names(lab, "mine:score") == [
        "lab/__init__.py", "lab/aside.py", "lab/deep.py", "mine.py", "parts.py", "words.py"
    ]  # fmt: skip
    assert names(lab, "other:f") == ["other.py"]
    assert names(lab, "lab.deep:one") == ["lab/__init__.py", "lab/aside.py", "lab/deep.py"]
    assert names(lab, "broken:f") == ["broken.py"]
    assert "mine" not in sys.modules


def test_of_what_is_installed_its_own_file():
    assert [path.name for path in sources_of("skillopt_scorers.given:score_of", ())] == ["given.py"]
    assert sources_of("no_such_module_here:f", ()) == ()
    assert sources_of("sys:exit", ()) == ()
    assert sources_of("", ()) == ()


def test_a_changed_import_is_another_choice(lab):
    def choice():
        return ScorerChoice("python", PythonSettings(function="mine:score", path=(lab,)))

    before = choice()
    assert set(before.files) == {"function"}
    (lab / "other.py").write_text("changed = 1")
    assert choice() == before
    (lab / "words.py").write_text("some = 2")
    assert choice() != before


def test_of_a_program_the_files_among_its_arguments(tmp_path):
    (tmp_path / "score.py").write_text("print(1)")

    def choice(*command, folder=tmp_path):
        return ScorerChoice("command", CommandSettings(command=command, folder=folder))

    before = choice("python3", "score.py", "--fast", "x" * 5000, "a\0b", "")
    assert set(before.files) == {"command"}
    assert choice("python3", "-c", "pass").files == {}
    assert choice("python3", str(tmp_path / "score.py"), folder=None).files == before.files
    (tmp_path / "score.py").write_text("print(0)")
    assert choice("python3", "score.py").files != before.files


def test_a_rubric_and_a_schema_in_files(tmp_path):
    file = tmp_path / "file"
    for name, make in (("rubric_file", JudgeSettings), ("schema_file", JsonSettings)):
        hashes = []
        for text in ("{}", '{"type": "object"}'):
            file.write_text(text)
            hashes.append(ScorerChoice("llm_judge", make(**{name: file})).files)
        assert set(hashes[0]) == {name}
        assert hashes[0] != hashes[1]
