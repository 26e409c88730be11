from skillopt_testkit import ScorerConformance


class TestExactConformance(ScorerConformance):
    name = "exact"
    pairs = (("The  Eiffel tower!", ["Eiffel Tower"]), ("seven", "Seven"))


class TestTokenF1Conformance(TestExactConformance):
    name = "token_f1"
