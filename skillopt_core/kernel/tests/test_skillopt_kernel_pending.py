"""A call that is answered later: the rest goes on, nothing is recorded of it, and then it ends the run in order."""

import threading
from typing import Any

import pytest
from skillopt_kernel.errors import Pending, PermanentError, SkillOptError
from skillopt_kernel.execution import AttemptJob, ModelCalls
from skillopt_kernel.loop.attempts import AttemptPool, Ended, Purpose
from skillopt_kernel.loop.worker import perform
from skillopt_kernel.models.calling import ModelCaller, ScopedCalls
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.records import Ask, Attempt, Outcome, Score, Task
from skillopt_kernel.stages.asking import failure_sentence, in_parallel
from skillopt_kernel_models_probes import ScriptedModel, ask

PURPOSE = Purpose("rollout", "folder")


class Open:
    """A pool whose attempts end at once, in the order begun; those of `waiting` are pending."""

    def __init__(self, *waiting: str, broken: str = "") -> None:
        self.waiting, self.broken, self.begun = waiting, broken, list[str]()
        self.pool = AttemptPool(
            lambda: 1, key=lambda one: (one.skill, one.task.id, one.sample), find=lambda _: None, start=self.start
        )

    def start(self, one: Ask, purpose: Purpose, done: Ended) -> None:
        self.begun.append(one.task.id)
        ended: Any = Outcome(one.task.id, "", "h", one.sample, score=Score(1.0, 1.0))
        if one.task.id in self.waiting:
            ended = Pending(f"{one.task.id} is answered later")
        if one.task.id == self.broken:
            ended = PermanentError("no key")
        threading.Thread(target=done, args=(ended,), daemon=True).start()


def asks(*names: str) -> list[Ask]:
    return [Ask("s", Task(name)) for name in names]


def test_everything_else_is_attempted_before_a_pending_attempt_is_raised() -> None:
    world = Open("a", "c")
    world.pool.prefetch(asks("x", "y"), PURPOSE)
    with pytest.raises(Pending, match="a is answered later"):
        list(world.pool.evaluate(asks("a", "b", "c", "d"), PURPOSE))
    assert sorted(world.begun) == ["a", "b", "c", "d", "x", "y"], "each once, what was fetched ahead too"


def test_what_is_pending_is_not_asked_again_by_the_same_process() -> None:
    world = Open("a")
    world.pool.prefetch(asks("a"), PURPOSE)
    for _ in range(2):
        with pytest.raises(Pending):
            list(world.pool.evaluate(asks("a"), PURPOSE))
    assert world.begun == ["a"]


def test_what_comes_before_a_pending_attempt_is_handed_over() -> None:
    results = Open("b").pool.evaluate(asks("a", "b"), PURPOSE)
    assert next(results).task_id == "a"
    with pytest.raises(Pending):
        next(results)


def test_what_must_end_the_run_at_once_beats_what_is_pending() -> None:
    with pytest.raises(PermanentError, match="no key"):
        list(Open("a", broken="b").pool.evaluate(asks("a", "b", "c"), PURPOSE))


def test_a_gate_that_is_settled_without_it_does_not_wait_for_it() -> None:
    world = Open("c")
    seen = []
    for outcome in world.pool.evaluate(
        asks("a", "b", "c"), PURPOSE, settled=lambda found: len(found) > 1, in_order=True
    ):
        seen.append(outcome.task_id)
        if len(seen) == 2:
            break
    assert seen == ["a", "b"]


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_all_calls_of_a_stage_are_asked_before_one_that_is_pending_is_raised(workers: int) -> None:
    asked = []

    def call(number: int) -> int:
        asked.append(number)
        if number % 2:
            raise Pending(f"call {number}")
        return number

    with pytest.raises(Pending, match="call 1"):
        in_parallel(workers, call, range(5))
    assert sorted(asked) == [0, 1, 2, 3, 4]
    assert in_parallel(workers, call, [0, 2, 4]) == [0, 2, 4]


def test_another_error_of_a_stage_beats_what_is_pending() -> None:
    def call(number: int) -> int:
        raise Pending("later") if number == 0 else PermanentError("no key")

    with pytest.raises(PermanentError, match="no key"):
        in_parallel(1, call, range(3))


def test_it_is_no_failure_that_a_stage_may_count() -> None:
    with pytest.raises(Pending):
        failure_sentence(Pending("later"))


def test_nothing_is_recorded_or_told_of_it_and_no_budget_is_held() -> None:
    ledger, events = Ledger(), []

    class Account:
        def spend(self, request: Any, send: Any) -> Any:
            number = ledger.reserve("target", 10.0, 0.1)
            request.reserved[number] = False
            return send()

    caller = ModelCaller(
        ScriptedModel(Pending("later"), "done"),
        "target",
        ledger=ledger,
        account=Account(),
        emit=events.append,  # type: ignore[arg-type]
    )
    with pytest.raises(Pending, match="later"):
        ScopedCalls(lambda _: caller, "scope").complete(ask())
    assert (ledger.sums(), ledger.reserved(), events) == ([], [], [])
    assert ScopedCalls(lambda _: caller, "scope").complete(ask()).text == "done"
    assert [event["ok"] for event in events] == [True]


def test_a_request_says_which_call_of_the_run_it_is() -> None:
    model = ScriptedModel("one", "two")
    calls = ScopedCalls(lambda _: ModelCaller(model, "target"), "skill/task/0/t1")
    calls.complete(ask())
    calls.complete(ask())
    assert [request.call for request in model.requests] == ["skill/task/0/t1/0", "skill/task/0/t1/1"]


class Judged:
    """An environment that hides what a call raises."""

    def attempt(self, task: Task, skill: str, target: Any) -> Attempt:
        try:
            return Attempt(target.chat([]).text)
        except Exception:
            return Attempt("hidden")

    def score(self, task: Task, attempt: Attempt, judge: Any) -> Score:
        judge.chat([])
        return Score(1.0, 1.0)


@pytest.mark.parametrize("role", ["target", "judge"])
def test_an_attempt_hands_on_that_a_call_is_pending_even_where_the_environment_hides_it(role: str) -> None:
    def later(request: Any) -> Any:
        raise Pending(f"the {role}'s call")

    calls = {"target": lambda _: ChatReply("4"), "judge": lambda _: ChatReply("right"), "agent": later, role: later}
    result = perform(AttemptJob(1, Task("t"), "", "rollout"), Judged(), ModelCalls(**calls), threading.Event())  # type: ignore[arg-type]
    assert isinstance(result.failure, Pending)
    assert isinstance(result.failure, SkillOptError)
    assert (result.failure.exit_code, result.score) == (3, None)
