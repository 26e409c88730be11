from skillopt_testkit import GateConformance


class TestConformance(GateConformance):
    name = "strictly_more"
