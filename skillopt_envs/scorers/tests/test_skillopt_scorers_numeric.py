"""Numbers as people write them, tolerances, and units that convert."""

import pytest
from skillopt_kernel.records import Task
from skillopt_scorers.numbers_near import NumericScorer
from skillopt_scorers.quantities import plain, quantities
from skillopt_scorers.settings import NumericSettings
from skillopt_scorers.units import Units

UNITS = Units()
"""For all tests: the registry of units takes a while to read."""


def scored(answer, reference, **settings):
    scorer = NumericScorer(NumericSettings(**settings))
    scorer._units = UNITS
    return scorer.score(answer, reference, Task("t"))


@pytest.mark.parametrize(
    ("answer", "reference", "settings"),
    [
        ("42", 42, {}),
        ("The answer is 7.", "7", {}),
        ("12.50", "12.5", {}),
        ("−5", -5, {}),
        ("- 5", "-5", {}),
        ("+5", 5.0, {}),
        ("1,250.5", 1250.5, {}),
        ("1\u202f250", "1,250", {}),
        ("1'250", "1250", {}),
        (".5", "0.5", {}),
        ("3.2e-5", "0.000032", {}),
        ("3.2 × 10^-5", "0.000032", {}),
        ("3.2×10⁻⁵", "0.000032", {}),
        ("3/4", "0.75", {}),
        ("1.5 million", 1_500_000, {}),
        ("$1.2 billion", "1200000000", {}),
        ("$1.2 million", "$1,200,000", {}),
        ("1200000 USD", "$1,200,000", {}),
        ("5", "$5", {}),
        ("12%", "0.12", {}),
        ("12 %", "12%", {}),
        ("12", "12%", {}),
        ("1.234,5", "1234,5", {"decimal_comma": True}),
        ("2 + 2 = 4", "4", {"take": "last"}),
        ("4 = 2 + 2", "4", {"take": "first"}),
        ("3.14159", "3.14", {"relative_tolerance": 0.01}),
        ("3.1", "3", {"absolute_tolerance": 0.1}),
        ("0.1", 0.2, {"absolute_tolerance": 0.1}),
        ("5", [4, 5], {}),
        ("5 km", "5000 m", {}),
        ("5", "5 km", {}),
        ("72 km/h", "20 m/s", {}),
        ("25 °C", "298.15 K", {}),
        ("5 Kilometers", "5 km", {}),
        ("5 km is far", "5000 m", {}),
        ("100 m in total", "0.1 km", {}),
        ("9 m^2", "9 m**2", {}),
        ("5 apples", 5, {}),
        ("5 kg", "5 km", {"unit": "ignored"}),
        ("**5** km", "5000 m", {}),
        ("*5*", 5, {}),
        ("__5__", 5, {}),
        ("`5`", 5, {}),
        ("$5$ km", "5 km", {}),
        ("$5\\,\\text{km}$", "5000 m", {}),
        ("25^\\circ\\text{C}", "298.15 K", {}),
        ("\\boxed{12{,}000}", 12000, {}),
        ("$\\frac{3}{4}$", 0.75, {}),
        ("3\\times 10^{5}", 300_000, {}),
        ("\\$5", "$5", {}),
        ("50\\%", 0.5, {}),
        ("½", 0.5, {}),
        ("1½ km", "1500 m", {}),
        ("1 1/2", 1.5, {}),
        ("10^3", 1000, {}),
        ("10⁻³", 0.001, {}),
        ("2**10", 1024, {}),
        ("minus 5", -5, {}),
        ("negative $5", "-$5", {}),
        ("5k", 5000, {}),
        ("8.3M", 8_300_000, {}),
        ("$1.2M", "$1,200,000", {}),
        ("$3b", "$3000000000", {}),
        ("50 percent", 0.5, {}),
        ("50 per cent", "50 %", {}),
        ("50 %", "50 percent", {}),
        ("5‰", 0.005, {}),
        ("5 euros", "€5", {}),
        ("３", 3, {}),
    ],
)
def test_right(answer, reference, settings):
    score = scored(answer, reference, **settings)
    assert (score.hard, score.soft, score.feedback) == (1, 1, "Right.")


@pytest.mark.parametrize(
    ("answer", "reference", "settings", "feedback"),
    [
        ("", 5, {}, "there is no answer"),
        ("five", 5, {}, '"five" holds no number that can be read; accepted: "5"'),
        ("COVID-19", -19, {}, "holds no number"),
        ("1,5", "1.5", {}, "holds no number"),
        ("2 + 2 = 4", "4", {}, "holds 3 numbers, and one was asked for"),
        ("-5", "5", {}, "too small by 10, 200 %"),
        ("3.5", "35", {}, "too small by 31.5, 90 %"),
        ("0.12", "12 %", {}, "too small by 11.88"),
        ("12%", "12", {}, "too small by 11.88"),
        ("3.3", "3.14", {"relative_tolerance": 0.01}, "too large by 0.16, 5.096 %; 0.0314 is tolerated."),
        ("3.11", "3", {"absolute_tolerance": 0.1}, "too large by 0.11"),
        ("12345678901234567890", "12345678901234567891", {}, "too small by 1"),
        ("0.30000000000000004", "0.3", {}, "too large"),
        ("1/0", "3", {}, "not finite"),
        ("9" * 5000, "3", {}, "too large by 1.00e+5000"),
        ("5 kg", "5 km", {}, "unit, kg, does not convert to km"),
        ("5 %", "5 km", {}, "unit, %, does not convert to km"),
        ("5", "5 km", {"unit": "required"}, "lacks the unit km"),
        ("5", "$5", {"unit": "required"}, "lacks the currency USD"),
        ("€5", "$5", {}, "is in EUR, not in USD"),
        ("$5", "5 km", {}, "money"),
        ("**5** m", "5 km", {}, "too small by 4.995"),
        ("$5\\ \\mathrm{m}$", "5 km", {}, "too small by 4.995"),
        ("2*3*4", 234, {}, "holds 3 numbers"),
        ("x_5", 5, {}, "holds no number"),
        ("costs $5 and $6", "$5", {}, "holds 2 numbers"),
        ("1½", 1, {}, "too large by 0.5"),
        ("5-1/2", 5.5, {}, "holds 2 numbers"),
        ("10^3", 10, {}, "too large by 990"),
        ("9^9^9", 9, {}, "too large"),
        ("9999^999", 9, {}, "not finite"),
        ("0^0", 1, {}, "not finite"),
        ("3 3/0", 3, {}, "not finite"),
        ("minus 5", 5, {}, "too small by 10"),
        ("5M", 5, {}, "too large"),
        ("5 cents", "$5", {}, "is in cents, not in USD"),
        ("5 euros", "$5", {}, "is in EUR, not in USD"),
        ("NaN", 5, {}, "holds no number"),
        ("inf", 5, {}, "holds no number"),
        ("1e400", 5, {}, "too large by 1.00e+400"),
        ("2–3", 3, {}, "holds 2 numbers"),
        ("between 2 and 3", 2, {}, "holds 2 numbers"),
        ("5 000", 5000, {}, "holds 2 numbers"),
        ("1.234.567", 1234567, {}, "holds no number"),
        ("1.5", 1.5, {"decimal_comma": True}, "holds no number"),
        ("5:30", 5, {}, "holds 2 numbers"),
        ("0.5", "50 %", {}, "too small by 49.5"),
    ],
)
def test_wrong(answer, reference, settings, feedback):
    score = scored(answer, reference, **settings)
    assert (score.hard, score.soft) == (0, 0)
    assert feedback in score.feedback


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("many", "'many' must hold exactly one finite number"),
        ("1 or 2", "exactly one"),
        ("1/0", "finite"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (True, "must be a number"),
        (None, "must be a number"),
        ({"value": 1}, "must be a number"),
        ([], "empty"),
        ([1, "x"], "'x' must hold"),
        ("5 foos", "ends with 'foos', which is no unit that is known"),
        ("5 __import__('os')", "no unit that is known"),
    ],
)
def test_a_reference_that_is_no_number_is_an_error(reference, sentence):
    scorer = NumericScorer()
    for asked in (lambda: scorer.check(reference, Task("t")), lambda: scorer.score("5", reference, Task("t"))):
        with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
            asked()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1" * 500_000 + ",5", 0),
        ("1,111" * 100_000, 0),
        ("$ " * 500_000, 0),
        ("5 " + "km " * 300_000, 1),
        ("- " * 500_000, 0),
        ("1 × 10" * 100_000, None),
        ("**5" * 100_000, None),
        ("_5 " * 100_000, None),
        ("$5 " * 100_000, None),
        ("\\frac{1" * 100_000, None),
        ("½" * 100_000, None),
        ("1 1/" * 100_000, None),
    ],
)
def test_long_texts_take_linear_time(text, numbers):
    """With quadratic time none of these would end."""
    found = quantities(plain(text))
    assert numbers is None or len(found) == numbers


@pytest.mark.parametrize(
    "answer", ["9 m**99999", "9 m^9^9", "9 " + "m" * 5000, "9 m" + "/m" * 3000, "9 1/0", "9 (((", "9 '"]
)
def test_units_of_an_answer_cannot_keep_the_scorer_busy(answer):
    assert scored(answer, "9 m").hard in (0, 1)
