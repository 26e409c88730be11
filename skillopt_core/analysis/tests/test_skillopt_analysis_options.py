"""Multiple-choice tasks: how options are read, and O-S4, the option that is always right."""

from random import Random

import pytest
from skillopt_analysis.auditing import audit_splits
from skillopt_analysis.chance import tails
from skillopt_analysis.options import option_findings
from skillopt_analysis.texts import options_of
from skillopt_kernel.records import Splits, Task

STOCK = "Some other statement is stronger"


def question(number, right, choices, **changes):
    fields = {"inputs": {"question": f"Question {number}?", "choices": choices}, "reference": right} | changes
    return Task(f"q{number:02d}", "choice", **fields)


def shuffled(number, stock):
    """Four options, the right one at a random place; with `stock`, the stock option, which is right."""
    texts = [f"Statement {number} {letter}" for letter in "wxyz"]
    if stock:
        texts[0] = STOCK
    right = texts[0]
    Random(number).shuffle(texts)
    return question(number, right, texts)


def test_o_s4_the_stock_option_is_reported_with_precision_and_coverage_in_each_split():
    tasks = tuple(shuffled(number, number % 2 == 0) for number in range(40))
    other = tuple(shuffled(100 + number, False) for number in range(40))
    report = audit_splits(Splits(tasks, other, tasks[:4]))
    (found,) = [one for one in report.findings if one.kind == "option_text" and one.split != "test"]
    assert (found.kind, found.split) == ("option_text", "train")
    told = found.numbers
    assert (told["precision"], told["coverage"], told["right"], told["shown"], told["of"]) == (1.0, 0.5, 20, 20, 40)
    assert told["chance"] == 0.25 and told["interval"][0] == pytest.approx(0.839, abs=1e-3)
    assert STOCK in found.message and "precision 1.00" in found.message and "coverage 0.50" in found.message
    assert found.tasks == tuple(task.id for task in tasks[::2])
    assert not [one for one in report.findings if one.split == "selection"]


def test_an_option_that_is_right_as_often_as_chance_has_it_is_none():
    tasks = []
    for number in range(60):
        texts = ["None of these", f"a{number}", f"b{number}", f"c{number}"]
        Random(number).shuffle(texts)
        tasks.append(question(number, "None of these" if number % 4 == 0 else f"a{number}", texts))
    assert [one for one in option_findings("train", tasks) if one.kind == "option_text"] == []


def test_an_option_that_is_never_right_is_a_shortcut_too():
    tasks = []
    for number in range(40):
        texts = ["All of these", f"a{number}", f"b{number}"]
        Random(number).shuffle(texts)
        tasks.append(question(number, f"a{number}", texts))
    (found,) = [one for one in option_findings("test", tasks) if one.kind == "option_text"]
    assert (found.numbers["precision"], found.numbers["right"]) == (0.0, 0)
    few = [one for one in option_findings("test", tasks[:8]) if one.kind == "option_text"]
    assert not few, "eight times wrong of three options is no proof: 2 * 17 * (2/3) ** 8 > 0.01"


def test_a_label_that_is_always_right_and_a_right_option_that_is_the_longest():
    tasks = [
        question(number, "A", [f"the long and right one {number}", f"x{number}", f"y{number}"]) for number in range(12)
    ]
    kinds = {one.kind: one for one in option_findings("train", tasks)}
    assert set(kinds) == {"option_label", "longest_option"}
    assert kinds["option_label"].message.startswith("the option labelled 'A' is right in 12 of the 12 tasks")
    assert kinds["longest_option"].numbers["coverage"] == 1.0


def test_a_reference_that_is_no_option_is_a_finding():
    tasks = [question(1, "D", ["a", "b"]), question(2, "A", ["a", "b"])]
    (found,) = option_findings("train", tasks)
    assert (found.kind, found.tasks) == ("no_right_option", ("q01",))


@pytest.mark.parametrize(
    ("choices", "reference", "right"),
    [
        (["x is even", "x is odd"], "B", "x is odd"),
        (["x is even", "x is odd"], "(b).", "x is odd"),
        (["x is even", "x is odd"], "  X is  odd. ", "x is odd"),
        (["x is even", "x is odd"], ["x is odd"], "x is odd"),
        ([{"label": "P", "text": "x is even"}, {"label": "Q", "text": "x is odd"}], "Q", "x is odd"),
        ([{"text": "x is even"}, {"content": "x is odd"}], {"label": "B", "text": "x is even"}, "x is odd"),
        ({"A": "x is even", "B": "x is odd"}, {"text": "x is odd"}, "x is odd"),
        (["A", "x is odd"], "A", "A"),
        ([1, 2], 2, "2"),
        (["x < y", "x > y"], "x > y", "x > y"),
    ],
)
def test_options_and_what_is_right_are_read_in_each_form(choices, reference, right):
    for name in ("choices", "options"):
        task = Task("t", inputs={"question": "?", name: choices}, reference=reference)
        assert [option.text for option in options_of(task) if option.right] == [right]
        assert len(options_of(task)) == 2


@pytest.mark.parametrize(
    "inputs", [{}, {"choices": []}, {"choices": None}, {"options": "abc"}, {"choices": 3}, {"choices": [" "]}]
)
def test_a_task_without_options_has_none(inputs):
    assert options_of(Task("t", inputs=inputs, reference="A")) == ()


def test_tails_are_those_of_the_binomial_and_of_unequal_chances():
    assert tails(20, [0.25] * 20) == (pytest.approx(0.25**20), 1.0)
    assert tails(0, [0.5] * 3) == (1.0, 0.125)
    assert tails(1, [0.5, 0.2]) == (pytest.approx(0.6), pytest.approx(0.9))


def test_on_data_without_shortcuts_the_audit_is_silent():
    """Two hundred data sets of 100 tasks whose right option is drawn by lot: false findings in at most 1 % a check."""
    texts = ["yes", "no", "perhaps", "never", "always"]
    found = 0
    for seed in range(200):
        lot = Random(seed)
        tasks = [question(number, lot.choice(texts), lot.sample(texts, 5)) for number in range(100)]
        found += len({one.kind for one in option_findings("train", tasks)})
    assert found <= 12  # of 600 checks at 1 %: 6 expected at most
