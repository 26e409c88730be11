"""What every environment must keep."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import Cancelled
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.prompting import VARIABLES
from skillopt_kernel.records import Outcome, Splits, Task

from skillopt_testkit.conformance.environment_promises import EnvironmentPromises
from skillopt_testkit.reflection import BUDGET, MEMORY, META, PAYLOAD, PROMPT_NAMES, ROOM, SCHEMA, reflected
from skillopt_testkit.scripted import ScriptedJudge, ScriptedTarget

SENTINEL = "Sentinel rule 7f3a: answer in few words."
ODD_REPLIES = (
    "",
    " \n ",
    "I do not know.",
    "<answer>",
    "<answer></answer>",
    "<answer>one</answer><answer>two</answer>",
    "</answer><answer>",
    '{"answer": null}',
    "```json\n{}\n```",
    "x" * 50_000,
    "\x00\ufeff",
    "日本語 🙂",
)


class EnvironmentConformance(EnvironmentPromises):
    """Subclass it, give `name`, `right_reply` and, in `env_settings`, where the data is.

    judge_reply  what the judge says, for environments that ask one
    sample       how many tasks of each split are tried
    """

    sample: ClassVar[int] = 5

    @pytest.fixture
    def env_settings(self) -> Mapping[str, Any]:
        """The kernel's keys of the section `env`, e.g. {"split_mode": "split_dir", "split_dir": ...}."""
        return {}

    @pytest.fixture
    def context(self, env_settings: Mapping[str, Any], tmp_path: Path) -> DriverContext:
        paths = {key: Path(value) for key, value in env_settings.items() if key.endswith(("_dir", "_path"))}
        common = EnvSettings(name=self.name, **{**env_settings, **paths})
        return DriverContext(logging.getLogger("skillopt.testkit"), seed=7, folder=tmp_path, common=common)

    @pytest.fixture
    def splits(self, driver: Any) -> Splits:
        """The splits of the data."""
        made = driver.splits()
        assert isinstance(made, Splits), f"splits() returned a {type(made).__name__}"
        return made

    @pytest.fixture
    def tasks(self, splits: Splits) -> list[Task]:
        """A few tasks of each split."""
        return [task for split in attrs.astuple(splits, recurse=False) for task in split[: self.sample]]

    def test_says_what_it_works_with(self, driver: Any) -> None:
        assert driver.targets
        assert set(driver.targets) <= {"chat", "agent"}
        assert driver.isolation in ("thread", "process")

    def test_splits_are_sound(self, splits: Splits) -> None:
        assert splits.train
        assert splits.selection
        every = [task for split in attrs.astuple(splits, recurse=False) for task in split]
        ids = [task.id for task in every]
        assert len(set(ids)) == len(ids), "a task's id is unique in all splits"
        for task in every:
            assert task.id.strip()
            json.dumps(task.inputs)
            assert task.reference is not None, f"task {task.id} has no reference to score with"

    def test_splits_are_the_same_again(self, driver: Any, another: Any, splits: Splits) -> None:
        assert driver.splits() == another.splits() == splits, "tasks, their order and their texts do not change"

    def test_a_right_reply_scores_one(self, driver: Any, tasks: list[Task]) -> None:
        for task in tasks:
            _, score = self.solved(driver, task, self.right_reply(task))
            assert score.hard == 1.0, f"task {task.id}: {score}"
            assert score.soft == 1.0, f"task {task.id}: {score}"

    def test_an_agent_is_given_the_skill_and_its_answer_is_scored(self, driver: Any, tasks: list[Task]) -> None:
        if "agent" not in driver.targets:
            pytest.skip("it works with no agent programs")
        for task in tasks:
            target = ScriptedTarget(self.right_reply(task), kind="agent")
            attempt = driver.attempt(task.hidden(), SENTINEL, target)
            assert [job.skill for job in target.jobs] == [SENTINEL] * len(target.jobs) != []
            assert not target.messages, "an agent program is not asked as a chat model"
            assert SENTINEL not in target.jobs[0].prompt, "the skill lies where the program looks for it"
            assert driver.score(task, attempt, ScriptedJudge(self.judge_reply)).hard == 1.0, f"task {task.id}"
        attempt = driver.attempt(tasks[0].hidden(), SENTINEL, ScriptedTarget("", kind="agent"))
        assert attempt.ended == "empty_answer", "an agent's empty answer is its own doing"

    def test_a_wrong_reply_says_why(self, driver: Any, tasks: list[Task]) -> None:
        for task in tasks:
            _, score = self.solved(driver, task, "I do not know.")
            assert score.hard < 1.0, f"task {task.id}"
            assert score.feedback.strip(), "a score below 1 says why, for whoever improves the skill"

    @pytest.mark.parametrize("reply", ODD_REPLIES)
    def test_odd_replies_are_scored(self, driver: Any, tasks: list[Task], reply: str) -> None:
        _, score = self.solved(driver, tasks[0], reply)
        assert score.hard < 1.0

    @pytest.mark.parametrize("finish", ["length", "filtered", "empty"])
    def test_replies_that_end_otherwise_are_scored(self, driver: Any, tasks: list[Task], finish: Any) -> None:
        text = "" if finish == "empty" else "The answer may be"
        _, score = self.solved(driver, tasks[0], ChatReply(text, finish=finish))
        assert score.hard < 1.0

    def test_scoring_is_repeatable(self, driver: Any, tasks: list[Task]) -> None:
        for task in tasks:
            attempt, score = self.solved(driver, task, "Perhaps this one.")
            assert driver.score(task, attempt, ScriptedJudge(self.judge_reply)) == score

    def test_the_target_is_shown_the_skill_and_never_the_reference(self, driver: Any, tasks: list[Task]) -> None:
        target = ScriptedTarget("I do not know.")
        driver.attempt(tasks[0].hidden(), SENTINEL, target)
        chats = " ".join(message.text for call in target.messages for message in call)
        jobs = " ".join(job.skill + job.prompt for job in target.jobs)
        assert SENTINEL in chats + jobs, "the skill must reach the target whole"
        # It works without the reference: two tasks that differ in nothing else are asked alike.
        other = ScriptedTarget("I do not know.")
        driver.attempt(attrs.evolve(tasks[0], reference="Canary 91c2").hidden(), SENTINEL, other)
        assert other.messages == target.messages

    def test_reflection_hands_everything_on_to_the_optimizer(self, driver: Any, splits: Splits) -> None:
        """Nothing that an analyst must know is lost on the way, whosever the prompts are."""
        tasks = splits.train[: self.sample]
        replies = [(task, "I do not know.") for task in tasks] + [(task, self.right_reply(task)) for task in tasks]
        outcomes = []
        for task, reply in replies:
            attempt, score = self.solved(driver, task, reply, SENTINEL)
            outcomes.append(Outcome(task.id, task.kind, "skill", 1, attempt, score))
        asked = reflected(driver, tasks, outcomes, SENTINEL)
        assert len(asked) >= 2, "analysts of failures and of successes"
        for system, user in asked:
            for mark, what in ((SCHEMA, "{{schema}}"), (PAYLOAD, "{{payload}}"), (str(BUDGET), "{{budget}}")):
                assert mark in system, f"an analyst's prompt of its own must use {what}, or the update mode is not told"
            for mark in (META, MEMORY, ROOM, SENTINEL):
                assert mark in user, f"{mark!r} did not reach the optimizer"
        shown = "\n".join(user for _, user in asked)
        for outcome in outcomes:
            assert f": {outcome.task_id}\n" in shown
            assert outcome.score is not None and outcome.score.feedback in shown
        if hasattr(driver, "evidence"):
            for task, outcome in zip((*tasks, *tasks), outcomes, strict=True):
                for title, text in driver.evidence(task, outcome.attempt).items():
                    assert text.strip() in shown, (
                        f"the evidence {title!r} of task {task.id} did not reach the optimizer"
                    )

    def test_prompts_of_its_own_leave_nothing_out(self, driver: Any) -> None:
        """A prompt that takes an update mode's place uses every variable that may stand in it."""
        own = driver.prompts() if hasattr(driver, "prompts") else {}
        for name in set(own) & set(PROMPT_NAMES):
            for variable in VARIABLES[name] - {"level"}:
                assert f"{{{{{variable}}}}}" in own[name], f"the prompt {name!r} must use {{{{{variable}}}}}"

    def test_an_attempt_that_is_cut_off_lets_it_pass(self, driver: Any, tasks: list[Task]) -> None:
        with pytest.raises(Cancelled):
            driver.attempt(tasks[0].hidden(), "", ScriptedTarget("late", cancel=True))

    def test_attempts_keep_the_conversation(self, driver: Any, tasks: list[Task]) -> None:
        target = ScriptedTarget("I do not know.")
        attempt = driver.attempt(tasks[0].hidden(), "", target)
        turns = attempt.trajectory or target.trajectory
        assert any(turn.role == "assistant" and "I do not know." in turn.content for turn in turns)

    def test_attempts_and_tasks_can_be_sent_to_a_worker(self, driver: Any, tasks: list[Task]) -> None:
        for task in tasks:
            attempt, score = self.solved(driver, task, self.right_reply(task))
            assert pickle.loads(pickle.dumps((task, attempt, score))) == (task, attempt, score)

    def test_many_threads_at_once_score_as_one(self, driver: Any, tasks: list[Task]) -> None:
        if driver.isolation != "thread":
            pytest.skip("one instance a worker")
        replies = [(task, self.right_reply(task) if i % 2 else "Perhaps.") for i, task in enumerate(tasks * 4)]
        alone = [self.solved(driver, task, reply)[1] for task, reply in replies]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda pair: self.solved(driver, *pair)[1], replies))
        assert together == alone

    def test_optional_parts_have_their_form(self, driver: Any, tasks: list[Task]) -> None:
        attempt, _ = self.solved(driver, tasks[0], "I do not know.")
        if hasattr(driver, "evidence"):
            assert all(isinstance(text, str) for text in driver.evidence(tasks[0], attempt).values())
        if hasattr(driver, "prompts"):
            assert all(text.strip() for text in driver.prompts().values())
        if hasattr(driver, "describe"):
            assert "\n" not in driver.describe(tasks[0])
        if hasattr(driver, "notes"):
            assert all(isinstance(note, str) and note.strip() for note in driver.notes())
        if hasattr(driver, "initial_skill"):
            assert driver.initial_skill().strip()
