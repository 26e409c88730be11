from skillopt_testkit import SchedulerConformance


class TestConformance(SchedulerConformance):
    name = "autonomous"
