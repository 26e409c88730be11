"""One reflection on an environment's attempts, with marked inputs, to see what reaches the optimizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from attrs import define, field
from skillopt_kernel.config.schema import GradientSettings
from skillopt_kernel.interfaces import Environment
from skillopt_kernel.loop.plan import PlannedBatch, PlannedStep
from skillopt_kernel.loop.step import StepContext
from skillopt_kernel.prompting import Prompt, resolve_prompts
from skillopt_kernel.records import Applied, EditBudget, Outcome, Task, Update
from skillopt_kernel.stages.reflect import skillopt_reflect

from skillopt_testkit.scripted import ScriptedOptimizer

META = "Sentinel advice 2c41: prefer rules to examples."
MEMORY = "Sentinel memory 88d0: step 3 was rejected."
ROOM = "Sentinel room 6a17: 90 tokens more."
SCHEMA = "Sentinel schema 5b1d"
PAYLOAD = "sentinel_items_e3f9"
BUDGET = 4711
PROMPT_NAMES = ("analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking")


class SentinelMode:
    """An `UpdateMode` whose payload and schema can be found again in a prompt. It applies nothing."""

    name = "sentinel"
    payload = PAYLOAD
    item_schema: Mapping[str, Any] = {"type": "object", "description": SCHEMA}
    budgeted = True
    separable = False

    def prompts(self) -> Mapping[str, str]:
        ranking = "Choose {{budget}} items."
        text = 'Reply with {"{{payload}}": [...]}, each item as {{schema}}.'
        analyst = f"{text} At most {{{{budget}}}} items."
        prompts = {name: analyst if name.startswith("analyst") else text for name in PROMPT_NAMES}
        return {**prompts, "ranking": ranking}

    def read_item(self, raw: Mapping[str, Any]) -> Any:
        raise ValueError("the sentinel mode has no items")

    def write_item(self, item: Any) -> dict[str, Any]:
        return {}

    def describe_item(self, item: Any) -> str:
        return ""

    def apply(self, skill: str, update: Update, budget: EditBudget, optimizer: Any) -> Applied:
        return Applied(skill)


@define
class ReflectingRun:
    """The part of a `Run` that reflection uses, with the environment's own prompts and evidence."""

    environment: Environment
    tasks: Mapping[str, Task]
    model: ScriptedOptimizer
    mode: SentinelMode = field(factory=SentinelMode)
    prompts: Mapping[str, Prompt] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.prompts = resolve_prompts({}, self.environment, self.mode)

    @property
    def settings(self) -> Any:
        @define
        class Settings:
            gradient: GradientSettings = field(factory=lambda: GradientSettings(analyst_workers=1))

        return Settings()

    def prompt(self, name: str, **values: str) -> str:
        return self.prompts[name].fill(**values)

    def room(self, skill: str) -> str:
        return ROOM

    def optimizer(self, stage: str, key: str = "") -> ScriptedOptimizer:
        return self.model

    def whole(self, outcome: Outcome) -> Outcome:
        return outcome

    def evidence(self, outcome: Outcome) -> Mapping[str, str]:
        give = getattr(self.environment, "evidence", None)
        return dict(give(self.tasks[outcome.task_id], outcome.attempt)) if give is not None else {}


def reflected(
    environment: Environment, tasks: Sequence[Task], outcomes: Sequence[Outcome], skill: str
) -> list[tuple[str, str]]:
    """System and user message of each analyst's call for these outcomes of training tasks."""
    model = ScriptedOptimizer([json.dumps({"patch": {"reasoning": "", PAYLOAD: []}})])
    run = ReflectingRun(environment, {task.id: task for task in tasks}, model)
    planned = PlannedStep(1, 1, 0, (PlannedBatch(tuple(tasks), 1),))
    step = attrs.evolve(
        StepContext(planned, planned.number, planned.epoch, (1,), MEMORY, META), planned_budget=EditBudget(BUDGET)
    )
    skillopt_reflect(run, step, tuple(outcomes), skill)  # type: ignore[arg-type]
    return model.asked
