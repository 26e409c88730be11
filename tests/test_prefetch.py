"""Nothing waits that need not: a server holds the replies of one kind back until a request of the other has come.

If training asked for the second only after the first was answered, neither would ever come.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from http_world import RULES, SPOILER, answer, configure, make_project
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

Body = Mapping[str, Any]
TRAIN, SELECTION, TEST = range(1, 9), range(9, 17), range(17, 21)
"""At which lines the questions of each split ask, for 8, 8 and 4 tasks."""


class Meeting:
    """Holds the answers to `held` until `awaited` has come; `met` says of each whether it did."""

    def __init__(self, held: Callable[[Body], bool], awaited: Callable[[Body], bool]) -> None:
        self.held, self.awaited = held, awaited
        self.came, self.met = threading.Event(), list[bool]()

    def __call__(self, body: Body) -> str:
        if self.awaited(body):
            self.came.set()
        if self.held(body):
            self.met.append(self.came.wait(60))
        return answer(body)

    def run(self, project: Project, **changes: Any) -> None:
        with ChatServer(self) as server:
            project.run("train", configure(project, server, **changes), "--out", "run").ok()
        assert self.met, "nothing was held"
        assert all(self.met), "what could have been asked beside it was not"


def line(body: Body) -> int:
    """At which line a request to the target asks; 0 for the optimizer's."""
    found = re.search(r"at line (\d+)\?", body["messages"][-1]["content"])
    return int(found[1]) if found and body["model"] == "target" else 0


def rules(body: Body) -> int:
    """How many rules the skill in a request holds."""
    return sum(rule in body["messages"][0]["content"] for rule in RULES.values())


def analyst(body: Body) -> bool:
    return body["model"] == "optimizer" and "failure_summary" in body["messages"][0]["content"]


def test_the_baseline_is_asked_beside_the_first_rollout(tmp_path: Path) -> None:
    meeting = Meeting(lambda body: line(body) in TRAIN, lambda body: line(body) in SELECTION)
    meeting.run(make_project(tmp_path), env={"workers": 5})
    assert len(meeting.met) == 8


def test_the_next_batch_is_attempted_while_the_analysts_read_this_one(tmp_path: Path) -> None:
    seen = set[int]()

    def beyond_the_first_batch(body: Body) -> bool:
        seen.update({line(body)} & set(TRAIN))
        return len(seen) > 4

    meeting = Meeting(analyst, beyond_the_first_batch)
    meeting.run(make_project(tmp_path), train={"accumulation": 2})
    assert len(seen) == 8


def test_both_sides_of_the_slow_update_are_attempted_at_the_same_time(tmp_path: Path) -> None:
    """Epoch 2 begins with two rules and ends with three, on two batches of four tasks.

    Its first step rolled out one batch with two rules, its second one the other with three: the comparison asks both
    batches the other way round.
    """
    most, of_first_step = 0, set[int]()

    def previous(body: Body) -> bool:
        nonlocal most
        most = max(most, rules(body))
        if line(body) not in TRAIN or rules(body) != 2:
            return False
        if most == 2:
            of_first_step.add(line(body))
        return most == 3

    meeting = Meeting(previous, lambda body: line(body) in of_first_step and rules(body) == 3)
    changes = {"train": {"num_epochs": 2}, "optimizer": {"use_slow_update": True}, "env": {"workers": 8}}
    meeting.run(make_project(tmp_path), **changes)
    assert (len(of_first_step), len(meeting.met)) == (4, 4)


def test_the_start_skill_is_tested_while_the_optimizer_is_asked(tmp_path: Path) -> None:
    meeting = Meeting(analyst, lambda body: line(body) in TEST and not rules(body))
    meeting.run(make_project(tmp_path), evaluation={"eval_test": True})


def test_best_and_last_skill_are_tested_at_the_same_time(tmp_path: Path) -> None:
    """Without the gate the last skill is not the best one: a later step adds what spoils every answer."""

    def tested(body: Body, last: bool) -> bool:
        spoilt = SPOILER in body["messages"][0]["content"]
        return line(body) in TEST and rules(body) > 0 and spoilt == last

    meeting = Meeting(lambda body: tested(body, last=False), lambda body: tested(body, last=True))
    changes = {"train": {"num_epochs": 3}, "evaluation": {"eval_test": True, "use_gate": False}, "env": {"workers": 8}}
    meeting.run(make_project(tmp_path), **changes)
    assert len(meeting.met) == 4
