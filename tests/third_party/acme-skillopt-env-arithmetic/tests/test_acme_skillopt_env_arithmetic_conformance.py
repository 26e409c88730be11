from skillopt_testkit import EnvironmentConformance


class TestConformance(EnvironmentConformance):
    name = "arithmetic"

    def right_reply(self, task):
        return f"It is {task.reference}"
