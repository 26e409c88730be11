"""Attempts without a model: how long the prompts are that the environment sends, and how often it asks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from attrs import define, field, frozen
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.loop.target import AttemptJudge, AttemptTarget
from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_kernel.records import Task
from skillopt_kernel.skill import shown
from skillopt_kernel.splits import PARTS

from skillopt_analysis.planning.amounts import Range

TASKS = 5
"""Tasks of each split that are rehearsed, spread evenly over it."""

REPLY = "I do not know."
"""What the rehearsal answers: nothing that ends a conversation early."""


@define
class _Heard:
    """What one attempt sent. Tokens of each prompt, the target's and the judge's."""

    target: list[int] = field(factory=list)
    judge: list[int] = field(factory=list)

    def answer_target(self, request: ChatRequest) -> ChatReply:
        self.target.append(_tokens(request))
        return ChatReply(REPLY)

    def answer_judge(self, request: ChatRequest) -> ChatReply:
        self.judge.append(_tokens(request))
        return ChatReply(REPLY)

    def perform(self, job: AgentJob) -> AgentResult:
        files = sum(len(content) for content in job.files.values() if isinstance(content, bytes))
        self.target.append(estimate_tokens(job.prompt + job.skill) + files // 4)
        return AgentResult(REPLY)


@frozen
class Rehearsed:
    """Means over the rehearsed tasks, in tokens.

    prompts   split -> the prompt of a call of the target; judge: of a call of the judge
    evidence  what the environment adds to a trajectory for analysts
    turns     model calls of one attempt; judged: calls of the judge for one
    complete  whether attempts were rehearsed. Else the sizes are those of the tasks' texts and the skill alone
    """

    prompts: dict[str, float]
    judge: float
    evidence: float
    turns: Range
    judged: Range
    complete: bool


def rehearse(prepared: Prepared) -> Rehearsed:
    """Attempt and score a few tasks of each split with the start skill, answering for the model.

    Only where attempts run in threads: an environment that needs processes of its own is not started for a plan. What
    an environment raises over such answers says nothing of a run, and leaves the task unrehearsed.
    """
    prompts: dict[str, float] = {}
    heard: list[_Heard] = []
    evidence: list[int] = []
    unheard = prepared.environment.isolation != "thread"
    for part in PARTS:
        tasks = _spread(getattr(prepared.splits, part))
        attempts = [] if unheard else [one for task in tasks if (one := _attempt(prepared, task, evidence)) is not None]
        heard += attempts
        calls = [tokens for one in attempts for tokens in one.target]
        prompts[part] = fmean(calls or [_texts(task, prepared) for task in tasks] or [0])
    asked = [len(one.target) for one in heard] or [1]
    judged = [tokens for one in heard for tokens in one.judge]
    often = len(judged) / len(heard) if heard else 0.0
    return Rehearsed(
        prompts=prompts,
        judge=fmean(judged or [0]),
        evidence=fmean(evidence or [0]),
        turns=Range(1, (1 + max(asked)) / 2, max(asked)),
        judged=Range(0, often, max((len(one.judge) for one in heard), default=0)),
        complete=bool(heard),
    )


def _attempt(prepared: Prepared, task: Task, evidence: list[int]) -> _Heard | None:
    heard = _Heard()
    target = AttemptTarget(
        heard.answer_target,
        heard.perform,
        stage="rehearsal",
        deadline=None,
        call_timeout=None,
        stop=threading.Event(),
    )
    environment: Any = prepared.environment
    try:
        attempt = environment.attempt(task, shown(prepared.start.text), target)
        environment.score(task, attempt, AttemptJudge(heard.answer_judge, None))
        if hasattr(environment, "evidence") and task in prepared.splits.train:
            evidence.append(sum(map(estimate_tokens, environment.evidence(task, attempt).values())))
    except Exception as error:
        prepared.logger.debug("task %s could not be rehearsed: %s", task.id, error)
        return heard if heard.target else None
    return heard if heard.target else None


def _spread(tasks: Sequence[Task]) -> list[Task]:
    count = min(TASKS, len(tasks))
    return [tasks[at * len(tasks) // count] for at in range(count)]


def _tokens(request: ChatRequest) -> int:
    """An estimate; images are not counted: what they cost only their model knows."""
    texts = [message.text for message in request.messages]
    texts += [f"{tool.name}{tool.description}{tool.parameters}" for tool in request.tools]
    return estimate_tokens("".join(texts))


def _texts(task: Task, prepared: Prepared) -> int:
    return estimate_tokens(shown(prepared.start.text) + "".join(_strings(task.inputs)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for one in values for text in _strings(one)]
