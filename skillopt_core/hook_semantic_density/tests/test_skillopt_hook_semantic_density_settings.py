"""The keys of `evaluation` as configurations have them: their forms, and mistakes with their place."""

import math

import pytest
from skillopt_hook_semantic_density.settings import LEADING_WORDS, SemanticDensitySettings, listed
from skillopt_testkit.configuration import problems

FIRST = "evaluation:\n  use_semantic_density: true\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("semantic_density_weight: much", "expected a number, got the text 'much'"),
        ("semantic_density_weight: '0.1'", "expected a number, got the text '0.1'; write it without quotes"),
        ("semantic_density_weight: true", "expected a number, got true"),
        ("semantic_density_weight: .nan", "expected a finite number, got nan"),
        ("semantic_density_weight: .inf", "expected a finite number, got inf"),
        ("semantic_density_weight: -0.1", "must be a number from 0 (no bonus) up, not -0.1"),
        ("leading_words: []", "names no word; null is the built-in list"),
        ("leading_words: ' , '", "names no word; null is the built-in list"),
        ("leading_words: {must: 1}", "expected a list, got a mapping; write [a, b]"),
        ("leading_words: [must, always verify]", "'always verify' is no single word of letters a to z and digits"),
        ("leading_words: must; never", "'must; never' is no single word"),
        ("leading_words: [must, '']", "'' is no single word"),
        ("leading_words: [ß]", "'ß' is no single word"),
    ],
)
@pytest.mark.parametrize("used", ["true", "false"])
def test_a_value_that_cannot_be_used_is_told_with_its_place(tmp_path, line, message, used):
    key = line.partition(":")[0]
    (problem,) = problems(tmp_path, FIRST.replace("true", used) + f"  {line}\n")
    assert problem.startswith(f"mine.yaml:3:3: evaluation.{key}: {message}")


def test_a_list_tells_which_of_its_items_is_wrong(tmp_path):
    (problem,) = problems(tmp_path, FIRST + "  leading_words: [must, [never]]\n")
    assert problem == "mine.yaml:3:25: evaluation.leading_words[1]: expected text, got a list"


def test_the_switch_is_true_or_false(tmp_path):
    (problem,) = problems(tmp_path, "evaluation:\n  use_semantic_density: 1\n")
    assert problem == "mine.yaml:2:3: evaluation.use_semantic_density: expected true or false, got the number 1"
    (problem,) = problems(tmp_path, FIRST.replace("true", "false") + "hooks: {plugins: [semantic_density]}\n")
    assert problem.startswith("mine.yaml:2:3: evaluation.use_semantic_density: is false, but hooks.plugins names")
    (problem,) = problems(tmp_path, FIRST + "  semantic_density_wieght: 1\n")
    assert problem.endswith("did you mean 'semantic_density_weight'?")
    assert problems(tmp_path, FIRST, "evaluation.leading_words=MUST,NO", "evaluation.semantic_density_weight=1") == []


@pytest.mark.parametrize("weight", [-0.01, math.nan, math.inf, "0.5", None, True])
def test_python_gets_the_same_errors(weight):
    with pytest.raises(ValueError, match="must be a number from 0"):
        SemanticDensitySettings(weight)


@pytest.mark.parametrize("words", [5, {"must": 1}, [1], b"must"])
def test_words_that_are_no_texts_are_an_error(words):
    with pytest.raises(ValueError, match="leading_words"):
        SemanticDensitySettings(leading_words=words)


def test_lists_that_count_the_same_words_are_equal():
    built_in = SemanticDensitySettings()
    assert built_in.semantic_density_weight == 0.05
    assert SemanticDensitySettings(leading_words="") == built_in
    assert SemanticDensitySettings(leading_words=LEADING_WORDS) == built_in
    assert SemanticDensitySettings(leading_words="must, Never,NEVER,") == SemanticDensitySettings(
        leading_words=["MUST", "never"]
    )
    assert listed(listed("A, b")) == listed("A, b") == ("a", "b")
