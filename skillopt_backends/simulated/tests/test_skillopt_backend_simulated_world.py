"""World files: what they mean, and what is said of those that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from skillopt_backend_simulated.loading import load_world
from skillopt_backend_simulated.world import World
from skillopt_backend_simulated_small_world import WORLD, MakeWorld
from skillopt_kernel.errors import ConfigError, DataError


def test_rules_are_found_in_any_spelling_of_space_and_case(world: World) -> None:
    assert world.rules_in("- GIVE the\nfull   name.\n\n- be polite!") == ("full", "polite")
    assert world.rules_in("Give the name.") == ()


def test_rules_are_found_where_json_quotes_them(make_world: MakeWorld) -> None:
    quoting = make_world(('"Give the full name."', "'Say \"full name\" in full.'"))
    assert quoting.rules_in(json.dumps('- Say "full name" in full.')) == ("full",)


def test_kinds_by_marker_and_by_pattern(world: World) -> None:
    assert world.kind_of("in WHICH year did it end?") == "year"
    assert world.kind_of("Who sank it?") == "name"
    assert world.kind_of("Where is it?") is None


def test_a_part_of_the_needs_gives_a_part_of_the_chance(make_world: MakeWorld) -> None:
    name = "needs: [full, spelt]\n    right_without: 0.0\n    right_with: 1.0"
    world = make_world((name, "needs: [full, spelt]\n    right_without: 0.2\n    right_with: 0.8"))
    assert world.right_chance("name", ()) == pytest.approx(0.2)
    assert world.right_chance("name", ("full", "polite")) == pytest.approx(0.5)
    assert world.right_chance("name", ("full", "spelt", "hurry")) == pytest.approx(0.8)
    assert world.right_chance("name", ("full", "spelt", "guess")) == 0.0


def test_what_rules_are(world: World) -> None:
    assert world.helpful == ("digits", "full", "spelt")
    assert world.harmful == ("guess", "hurry")
    assert world.distractors == ("polite",)


def test_the_question_on_its_own_line_wins_over_one_that_is_quoted(world: World) -> None:
    found = world.question_in("Who built mill 1? was asked before.\nWho built mill 12?\n")
    assert found is not None and found.text == "Who built mill 12?"
    inside = world.question_in("Tell me: who built mill 12? Quickly.")
    assert inside is not None and inside.text == "Who built mill 12?"


@pytest.mark.parametrize(
    ("old", "new", "where", "sentence"),
    [
        ("insight: 1.0", "insite: 1.0", "23:3", "optimizer.insite: no such key; did you mean 'insight'?"),
        ("insight: 1.0", "insight: 1.5", "23:3", "optimizer.insight: must be from 0.0 to 1.0, not 1.5"),
        ("insight: 1.0", "insight: high", "23:3", "optimizer.insight: expected a number, got the text 'high'"),
        ("insight: 1.0", "insight: .nan", "23:3", "optimizer.insight: expected a finite number"),
        ("needs: [digits]", "needs: [digit]", "6:5", "`rules` holds no 'digit'; did you mean 'digits'?"),
        ("needs: [digits]", "needs: digits", "6:5", "kinds.year.needs: expected a list"),
        ("    needs: [digits]\n", "", "4:3", "kinds.year.needs: is missing"),
        ("right_with: 1.0\n  name", "right_with: -1\n  name", "8:5", "kinds.year.right_with: must be from"),
        ("marker: In which year", "marker: ''", "4:3", "kinds.year: needs either `marker` or `pattern`"),
        ("marker: In which year", 'marker: x\n    pattern: "y"', "4:3", "kinds.year: needs either"),
        ('"^Who (built|sank) "', '"^Who (built"', "10:5", "kinds.name.pattern: is not a regular expression"),
        ("{all: 1.0}", "{yaer: 1.0}", "18:", "rules.guess.harms.yaer: `kinds` holds no 'yaer'; did you mean 'year'?"),
        ("{all: 1.0}", "{all: 2.0}", "18:", "rules.guess.harms.all: must be from 0 to 1"),
        ('"Be polite."', '""', "20:", "rules.polite.sentence: must not be blank"),
        ('"Be polite."', '"Guess"', "20:", "rules.polite.sentence: also stands in the sentence of 'guess'"),
        ("data: [data/*.json]", "data: []", "2:1", "data: must name at least one file"),
        ("seed: 3", "seed: 3\nseed: 4", "2:1", "seed"),
        ("seed: 3", "seed: 3.5", "1:1", "seed: expected a whole number"),
        ("target: {partial: 0.0}", "target: [0.0]", "21:1", "target"),
        ("kinds:\n", "kinds: [\n", ":", "is not valid YAML"),
    ],
)  # fmt: skip
def test_bad_worlds(world_path: Path, old: str, new: str, where: str, sentence: str) -> None:
    assert WORLD.count(old) == 1
    world_path.write_text(WORLD.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_world(world_path)
    assert f"world.yaml:{where.rstrip(':')}" in str(caught.value)
    assert sentence in str(caught.value)


def test_all_problems_of_a_world_are_told_together(world_path: Path) -> None:
    world_path.write_text(WORLD.replace("insight: 1.0", "insight: 2").replace("seed: 3", "sead: 3"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_world(world_path)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("source", [None, "", "  "])
def test_no_world_says_which_key_to_set(source: str | None) -> None:
    with pytest.raises(ConfigError, match=r"set `model\.simulated_world` to its path"):
        load_world(source)


def test_worlds_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        load_world(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="no package 'not_there' is installed"):
        load_world("package:not_there/world.yaml")
    with pytest.raises(ConfigError, match=r"has no 'none\.yaml'"):
        load_world("package:skillopt_backend_simulated/none.yaml")
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="kinds: is missing"):
        load_world(tmp_path / "empty.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_world(tmp_path / "latin.yaml")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[{]", r"items\.json:1: is not valid JSON"),
        ("{}", "must be a JSON list"),
        ("[3]", "item 1: `question` must be a text"),
        ('[{"question": " ", "answers": ["a"]}]', "item 1: `question` must be a text"),
        ('[{"question": "In which year?", "answers": []}]', "item 1: `answers` must be a list"),
        ('[{"question": "In which year?", "answers": "1700"}]', "item 1: `answers` must be a list"),
        ('[{"question": "Where?", "answers": ["a"]}]', "item 1: no kind in .* has a marker or pattern"),
        (
            '[{"question": "Who built it?", "answers": ["a"]}, {"question": "Who built it? ", "answers": ["b"]}]',
            "item 2: the question has other answers than in .* item 1",
        ),
    ],
)
def test_bad_data(world_path: Path, content: str, sentence: str) -> None:
    (world_path.parent / "data" / "items.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        load_world(world_path)


def test_data_that_is_not_there(world_path: Path) -> None:
    for pattern in ("nothing/*.json", "/elsewhere/*.json"):
        world_path.write_text(WORLD.replace("data/*.json", pattern), encoding="utf-8")
        with pytest.raises(DataError, match="data: "):
            load_world(world_path)
