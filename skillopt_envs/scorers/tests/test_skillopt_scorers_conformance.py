from skillopt_testkit import ScorerConformance


class TestExactConformance(ScorerConformance):
    name = "exact"
    pairs = (("The  eiffel tower.", ["The Eiffel Tower"]), ("seven", "Seven"))


class TestTokenF1Conformance(TestExactConformance):
    name = "token_f1"


class TestAnlsConformance(ScorerConformance):
    name = "anls"
    pairs = (("the eiffel  tower", ["The Eiffel Tower"]), ("seven", "Seven"))


class TestNumericConformance(ScorerConformance):
    name = "numeric"
    options = {"relative_tolerance": 0.01}  # noqa: RUF012
    pairs = (("12.1 km", "12 km"), ("7", [7, 8]), ("1,250", 1250.5))
