"""The executor `threads` keeps what every executor must keep."""

from skillopt_testkit import ExecutorConformance


class TestThreads(ExecutorConformance):
    name = "threads"
