"""The pool: order, joining, early stop, failures; with real threads and plain functions as attempts."""

import threading
import time

import pytest
from skillopt_kernel.errors import PermanentError, StoppedEarly
from skillopt_kernel.loop.attempts import BACKGROUND, AttemptPool, Ended, Purpose
from skillopt_kernel.records import Ask, Missing, Outcome, Score, Task

PURPOSE = Purpose("rollout", "folder")


def asks(*names: str, skill: str = "s", sample: int = 0) -> list[Ask]:
    return [Ask(skill, Task(name), sample) for name in names]


class World:
    """Attempts that take as long as told, counted; stored outcomes are found."""

    def __init__(
        self,
        capacity: int = 4,
        seconds: dict[str, float] | None = None,
        missing: tuple[str, ...] = (),
        retries: int = 0,
        lost: dict[str, int] | None = None,
    ):
        """missing: tasks that never get a score; lost: tasks that get one after so many attempts without."""
        self.lost = lost or {}
        self.reason = "endpoint"
        self.begun: list[str] = []
        self.stored: dict[tuple[str, str, int], Outcome] = {}
        self.seconds, self.missing = seconds or {}, missing
        self.lock = threading.Lock()
        self.fail_at: str | None = None
        self.peak = self.now = 0
        self.pool = AttemptPool(
            lambda: capacity,
            key=self.key,
            find=lambda ask: self.stored.get(self.key(ask)),
            start=self.start,
            expected=lambda ask: self.seconds.get(ask.task.id, 0.0),
            missing_retries=retries,
        )

    @staticmethod
    def key(ask: Ask) -> tuple[str, str, int]:
        return (ask.skill, ask.task.id, ask.sample)

    def start(self, ask: Ask, purpose: Purpose, done: Ended) -> None:
        def work() -> None:
            try:
                ended: Outcome | BaseException = self.perform(ask)
            except PermanentError as error:
                ended = error
            done(ended)

        threading.Thread(target=work, daemon=True).start()

    def perform(self, ask: Ask) -> Outcome:
        with self.lock:
            self.begun.append(ask.task.id)
            self.now += 1
            self.peak = max(self.peak, self.now)
        time.sleep(self.seconds.get(ask.task.id, 0.001))
        with self.lock:
            self.now -= 1
        if ask.task.id == self.fail_at:
            raise PermanentError("no key; set one")
        if ask.task.id in self.missing or self.begun.count(ask.task.id) <= self.lost.get(ask.task.id, 0):
            return Outcome(ask.task.id, "", "h", ask.sample, missing=Missing(self.reason, "gone"))
        outcome = Outcome(ask.task.id, "", "h", ask.sample, score=Score(1.0, 1.0))
        self.stored[self.key(ask)] = outcome
        return outcome


def test_outcomes_come_in_the_order_asked_whatever_finishes_first() -> None:
    world = World(seconds={"a": 0.05, "b": 0.001, "c": 0.02})
    assert [o.task_id for o in world.pool.evaluate(asks("a", "b", "c"), PURPOSE)] == ["a", "b", "c"]


def test_the_longest_expected_is_begun_first_unless_order_matters() -> None:
    seconds = {"a": 0.001, "b": 0.03, "c": 0.01}
    free, ordered = World(1, seconds), World(1, seconds)
    list(free.pool.evaluate(asks("a", "b", "c"), PURPOSE))
    list(ordered.pool.evaluate(asks("a", "b", "c"), PURPOSE, in_order=True))
    assert free.begun == ["b", "c", "a"]
    assert ordered.begun == ["a", "b", "c"]


def test_an_attempt_in_flight_is_joined_and_a_stored_one_is_not_asked_again() -> None:
    world = World(seconds={"a": 0.03})
    world.pool.prefetch(asks("a", "b"), PURPOSE)
    assert [o.task_id for o in world.pool.evaluate(asks("a", "b"), PURPOSE)] == ["a", "b"]
    assert len(list(world.pool.evaluate(asks("b", "a"), PURPOSE))) == 2
    assert sorted(world.begun) == ["a", "b"]


def test_a_missing_outcome_is_asked_again_by_the_next_who_asks() -> None:
    world = World(missing=("a",))
    first = list(world.pool.evaluate(asks("a"), PURPOSE))
    world.missing = ()
    second = list(world.pool.evaluate(asks("a"), PURPOSE))
    assert first[0].missing is not None
    assert second[0].scored


def test_never_more_than_capacity_run_at_once() -> None:
    names = [f"t{n}" for n in range(40)]
    world = World(3, dict.fromkeys(names, 0.002))
    assert len(list(world.pool.evaluate(asks(*names), PURPOSE))) == 40
    assert world.peak == 3


def test_a_lower_rank_is_begun_first() -> None:
    world = World(1, {"block": 0.05})
    world.pool.prefetch(asks("block"), PURPOSE)
    world.pool.prefetch(asks("later"), Purpose("selection", "f", rank=1))
    world.pool.prefetch(asks("sooner"), Purpose("rollout", "f", rank=0))
    list(world.pool.evaluate(asks("later", "sooner"), PURPOSE))
    assert world.begun == ["block", "sooner", "later"]


class Held(World):
    """Attempts that end when they are told to, in the thread that tells it."""

    def start(self, ask: Ask, purpose: Purpose, done: Ended) -> None:
        self.begun.append(ask.task.id)
        self.done[ask.task.id] = (ask, done)

    done: dict[str, tuple[Ask, Ended]]

    def end(self, name: str, hard: float = 1.0) -> None:
        ask, done = self.done.pop(name)
        done(Outcome(name, "", "h", ask.sample, score=Score(hard, hard)))


def held(capacity: int) -> Held:
    world = Held(capacity)
    world.done = {}
    return world


@pytest.mark.parametrize(("capacity", "places"), [(1, 1), (4, 1), (5, 2), (24, 6)])
def test_what_is_needed_at_the_end_only_gets_a_quarter_of_the_places(capacity: int, places: int) -> None:
    world = held(capacity)
    behind, names = [f"b{n}" for n in range(40)], [f"t{n}" for n in range(40)]
    world.pool.prefetch(asks(*behind), Purpose("test", "f", rank=BACKGROUND))
    assert world.begun == behind[:places]
    world.pool.prefetch(asks(*names), PURPOSE)
    assert world.begun == behind[:places] + names[: capacity - places]
    world.end("b0")
    assert world.begun[-1] == names[capacity - places], "what is waited for comes first"


def test_what_was_fetched_behind_is_begun_at_once_when_it_is_waited_for() -> None:
    world = held(4)
    behind = [f"b{n}" for n in range(4)]
    world.pool.prefetch(asks(*behind), Purpose("test", "f", rank=BACKGROUND))
    assert world.begun == ["b0"]
    outcomes = world.pool.evaluate(asks(*behind), PURPOSE)
    assert world.begun == behind
    for name in reversed(behind):
        world.end(name)
    assert [one.task_id for one in outcomes] == behind
    assert world.begun == behind, "nothing was asked twice"


def test_no_more_is_begun_than_settles_it_if_all_comes_as_expected() -> None:
    """Settled by three failures: three are expected to fail, and once one does not, all others are begun."""
    expected = {f"t{n}": Outcome(f"t{n}", "", "h", 0, score=Score(float(n > 2), 0.0)) for n in range(6)}
    world = held(10)
    outcomes = world.pool.evaluate(
        asks(*expected),
        PURPOSE,
        settled=lambda known: sum(one.hard == 0 for one in known.values()) >= 3,
        expected=expected,
        in_order=True,
    )
    assert world.begun == ["t0", "t1", "t2"]
    world.end("t2", hard=0.0)
    world.end("t0", hard=0.0)
    assert world.begun == ["t0", "t1", "t2"]
    world.end("t1", hard=1.0)
    assert world.begun == list(expected)
    for name in ("t3", "t4", "t5"):
        world.end(name)
    assert [one.task_id for one in outcomes] == list(expected)


def test_closing_the_iterator_drops_what_has_not_begun() -> None:
    names = [f"t{n:02d}" for n in range(30)]
    world = World(2, dict.fromkeys(names, 0.005))
    outcomes = world.pool.evaluate(asks(*names), PURPOSE, in_order=True)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    world.pool.drain()
    assert len(world.begun) < 8


def test_once_settled_nothing_beyond_the_last_arrival_is_begun() -> None:
    names = [f"t{n:02d}" for n in range(30)]
    world = World(2, dict.fromkeys(names, 0.003))
    outcomes = world.pool.evaluate(asks(*names), PURPOSE, in_order=True, settled=lambda arrived: len(arrived) >= 5)
    taken = [next(outcomes).task_id for _ in range(5)]
    world.pool.drain()
    assert taken == names[:5]
    assert len(world.begun) <= 7  # five that settled it, and what was in flight
    assert next(outcomes).task_id == names[5]  # who insists is answered all the same


def test_a_gap_before_a_stored_outcome_is_still_begun() -> None:
    world = World(1)
    late = asks("c")[0]
    world.stored[world.key(late)] = Outcome("c", "", "h", 0, score=Score(0.0, 0.0))
    outcomes = world.pool.evaluate(asks("a", "b", "c", "d"), PURPOSE, in_order=True, settled=lambda arrived: True)
    assert [next(outcomes).task_id for _ in range(3)] == ["a", "b", "c"]
    outcomes.close()  # type: ignore[attr-defined]
    world.pool.drain()
    assert world.begun == ["a", "b"]


def test_what_must_end_the_run_is_raised_in_the_asking_thread() -> None:
    world = World(2)
    world.fail_at = "b"
    with pytest.raises(PermanentError, match="set one"):
        list(world.pool.evaluate(asks("a", "b", "c"), PURPOSE, in_order=True))


def test_a_stopped_pool_finishes_what_is_in_flight_and_begins_nothing_more() -> None:
    names = [f"t{n:02d}" for n in range(10)]
    world = World(2, dict.fromkeys(names, 0.02))
    outcomes = world.pool.evaluate(asks(*names), PURPOSE, in_order=True)
    next(outcomes)
    world.pool.stop()
    with pytest.raises(StoppedEarly):
        list(outcomes)
    world.pool.drain()
    assert len(world.begun) <= 4
    assert len(world.stored) == len(world.begun)


def test_what_is_missing_is_asked_again_after_all_others() -> None:
    names = ("a", "b", "c", "d", "e")
    world = World(2, lost={"a": 1, "c": 2}, retries=2)
    outcomes = list(world.pool.evaluate(asks(*names), PURPOSE, in_order=True))
    assert [(one.task_id, one.scored) for one in outcomes] == [(name, True) for name in names]
    assert sorted(world.begun[:5]) == list(names)
    assert (sorted(world.begun[5:7]), world.begun[7:]) == (["a", "c"], ["c"])


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_so_many_times_and_no_more(retries: int) -> None:
    world = World(missing=("b",), retries=retries)
    outcomes = list(world.pool.evaluate(asks("a", "b", "c"), PURPOSE))
    assert [one.scored for one in outcomes] == [True, False, True]
    assert world.begun.count("b") == 1 + retries
    assert len(world.begun) == 3 + retries


def test_a_request_that_was_rejected_is_not_asked_again() -> None:
    world = World(missing=("b",), retries=2)
    world.reason = "rejected"
    list(world.pool.evaluate(asks("a", "b"), PURPOSE))
    assert world.begun.count("b") == 1


def test_while_nothing_has_a_score_nothing_is_asked_again() -> None:
    world = World(missing=("a", "b", "c"), retries=2)
    assert not any(one.scored for one in world.pool.evaluate(asks("a", "b", "c"), PURPOSE))
    assert sorted(world.begun) == ["a", "b", "c"]
    list(world.pool.evaluate(asks("d"), PURPOSE))
    list(world.pool.evaluate(asks("a"), PURPOSE))
    assert world.begun.count("a") == 4, "once something has a score, the single attempt is worth another"


def test_once_settled_what_is_missing_before_that_is_still_asked_again() -> None:
    """So that the prefix that decides is the one of a run without the fault."""
    names = [f"t{n:02d}" for n in range(30)]
    world = World(2, dict.fromkeys(names, 0.002), lost={"t01": 1}, retries=2)
    outcomes = world.pool.evaluate(
        asks(*names), PURPOSE, in_order=True, settled=lambda arrived: sum(o.scored for o in arrived.values()) >= 5
    )
    taken = [next(outcomes) for _ in range(5)]
    assert all(one.scored for one in taken)
    assert world.begun.count("t01") == 2
    outcomes.close()  # type: ignore[attr-defined]
    world.pool.drain()
    assert len(world.begun) <= 10


def test_a_run_that_stops_takes_no_missing_outcome_for_the_last_word() -> None:
    world = World(1, {"b": 1.0}, missing=("a",), retries=2)
    outcomes = world.pool.evaluate(asks("c", "a", "b"), PURPOSE, in_order=True)
    assert next(outcomes).scored
    threading.Timer(0.1, world.pool.stop).start()
    with pytest.raises(StoppedEarly):
        next(outcomes)
    assert world.begun == ["c", "a", "b"]


def test_a_failure_ends_the_wait_for_the_others() -> None:
    world = World(1, {"b": 0.05}, missing=("a",), retries=2)
    world.fail_at = "b"
    outcomes = world.pool.evaluate(asks("c", "a", "b"), PURPOSE, in_order=True)
    assert next(outcomes).scored
    with pytest.raises(PermanentError):
        next(outcomes)
