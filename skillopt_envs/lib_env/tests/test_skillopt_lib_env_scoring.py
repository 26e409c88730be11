"""What a choice of a scorer knows beside its settings: contents of files, its place, and what scores cannot show."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import frozen
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.records import Task
from skillopt_lib_env.scoring import ScorerChoice, content_hash, looked_at, only_shape


@frozen
class Plain:
    rubric_file: Path | None = None
    folder: Path | None = None
    words: int = 3


@frozen
class Own:
    path: Path

    def files(self) -> Mapping[str, tuple[Path, ...]]:
        return {"sources": (self.path,)}


def tasks(*references):
    return [Task(f"t{number}", reference=reference) for number, reference in enumerate(references)]


def test_a_file_that_a_setting_names_counts_by_its_content(tmp_path):
    file = tmp_path / "rubric.md"
    file.write_text("It rhymes.")
    before = ScorerChoice("mine", Plain(file, tmp_path))
    assert set(before.files) == {"rubric_file"}, "a folder has no content of its own, and what is not set neither"
    moved = tmp_path / "elsewhere.md"
    moved.write_text("It rhymes.")
    assert ScorerChoice("mine", Plain(moved)).files == before.files, "where it lies does not count"
    file.write_text("It scans.")
    assert ScorerChoice("mine", Plain(file, tmp_path)).files != before.files
    assert ScorerChoice("mine").files == {}


def test_settings_may_say_themselves_which_files_they_mean(tmp_path):
    (tmp_path / "a.py").write_text("1")
    assert ScorerChoice("mine", Own(tmp_path / "a.py")).files == {"sources": content_hash([tmp_path / "a.py"])}


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.py cannot be read: No such file"):
        ScorerChoice("mine", Own(tmp_path / "gone.py"))


def test_the_place_is_no_part_of_the_choice():
    assert ScorerChoice("mine", where="a.yaml:3") == ScorerChoice("mine", where="a.yaml:4")


def raising(*errors):
    left = list(errors)

    def driver(kind, name, settings=None):
        raise left.pop(0)

    return DriverContext(logging.getLogger("test"), driver=driver)


def test_what_a_scorer_lacks_is_told_with_the_place_of_the_choice():
    choice = ScorerChoice("mine", where="a.yaml:3: env.scorer")
    with pytest.raises(ConfigError) as caught:
        choice.make(raising(ConfigError("it lacks a rubric", "it lacks a judge")))
    assert caught.value.problems == (
        "a.yaml:3: env.scorer: it lacks a rubric",
        "a.yaml:3: env.scorer: it lacks a judge",
    )
    with pytest.raises(ConfigError, match=r"^it lacks a rubric$"):
        ScorerChoice("mine").make(raising(ConfigError("it lacks a rubric")))


def test_a_scorer_within_a_scorer_is_told_by_its_own_place_alone():
    inner = ScorerChoice("inner", where="a.yaml:5: env.scorer.fields[a]")

    def driver(kind, name, settings=None):
        if name == "inner":
            raise ConfigError("it lacks a rubric")
        return inner.make(context)

    context = DriverContext(logging.getLogger("test"), driver=driver)
    with pytest.raises(ConfigError) as caught:
        ScorerChoice("outer", where="a.yaml:3: env.scorer").make(context)
    assert str(caught.value) == "a.yaml:5: env.scorer.fields[a]: it lacks a rubric"


class Unknowing:
    pass


class Knowing:
    def shape_only(self, tasks):
        return "at the heading" if tasks[0].reference == "shape" else ""


@pytest.mark.parametrize(
    ("scorer", "references", "seen"),
    [
        (Unknowing(), ("a", "b"), ""),
        (Unknowing(), ("a", "a", "b"), ""),
        (Unknowing(), ("a",), ""),
        (Unknowing(), (), ""),
        (Unknowing(), (None, None), ""),
        (Unknowing(), ("a", "a"), "for the same answer, since they have one reference"),
        (Unknowing(), (["a"], ["a"], ["a"]), "for the same answer, since they have one reference"),
        (Knowing(), ("a", "a"), ""),
        (Knowing(), ("shape", "b"), "at the heading"),
        (Knowing(), ("shape",), ""),
    ],
)
def test_o_h3_what_scores_cannot_show(scorer, references, seen):
    assert looked_at(scorer, tasks(*references)) == seen
    sentence = only_shape(scorer, tasks(*references))
    assert bool(sentence) == bool(seen)
    if seen:
        assert f"in all {len(references)} training tasks the scorer looks {seen}, so that" in sentence
        assert "give each task a reference of its own, or judge by a rubric" in sentence
