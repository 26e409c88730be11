"""Sums of whole numbers: no data, one call an attempt, the last number of the reply is the answer."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Literal

from attrs import frozen
from skillopt_kernel import Attempt, DriverContext, Judge, Message, Score, Splits, Target, Task


@frozen
class ArithmeticSettings:
    """What the sums are like.

    digits  of each number
    train_tasks  how many sums to learn from
    held_out_tasks  how many sums for selection, and again for the test
    """

    digits: int = 2
    train_tasks: int = 8
    held_out_tasks: int = 8


class ArithmeticEnvironment:
    targets = frozenset({"chat"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: ArithmeticSettings, context: DriverContext) -> None:
        self.settings, self.seed = settings, context.seed

    def splits(self) -> Splits:
        draw = random.Random(self.seed)
        counts = (self.settings.train_tasks, self.settings.held_out_tasks, self.settings.held_out_tasks)
        tasks = [self._task(number, draw) for number in range(sum(counts))]
        first, second = counts[0], counts[0] + counts[1]
        return Splits(tuple(tasks[:first]), tuple(tasks[first:second]), tuple(tasks[second:]))

    def _task(self, number: int, draw: random.Random) -> Task:
        one, other = (draw.randrange(10 ** (self.settings.digits - 1), 10**self.settings.digits) for _ in range(2))
        kind = "even" if (one + other) % 2 == 0 else "odd"
        return Task(f"sum-{number:04d}", kind, {"sum": f"{one} + {other}"}, reference=one + other)

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        reply = target.chat([Message("system", skill), Message("user", f"How much is {task.inputs['sum']}?")])
        numbers = re.findall(r"-?\d+", reply.text)
        ended = None if numbers else "empty_answer"
        return Attempt(numbers[-1] if numbers else "", target.trajectory, ended=ended)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        right = float(attempt.output == str(task.reference))
        said = attempt.output or "no number"
        return Score(right, right, "Right." if right else f"Wrong: {said}, but the sum is {task.reference}.")

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        return {"The sum": str(task.reference)}

    def initial_skill(self) -> str:
        return "# Sums\n\n- Reply with the number only.\n"
