"""The executor `processes` keeps what every executor must keep."""

from skillopt_testkit import ExecutorConformance


class TestProcesses(ExecutorConformance):
    name = "processes"
