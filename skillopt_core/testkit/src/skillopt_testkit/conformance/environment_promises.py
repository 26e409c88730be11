"""What an environment promises beyond scoring: no leaks, repeatability, typed faults, ids and sizes of any kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    DataError,
    ModelError,
    PassingError,
    Pending,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatReply, Message
from skillopt_kernel.records import Attempt, Score, Task

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import ScriptedJudge, ScriptedTarget

FAULTS = (
    PassingError("the endpoint is busy"),
    CallTimeout("no reply in time"),
    PermanentError("there is no key"),
    RejectedRequest("the request is invalid"),
    ContextTooLong("the context is too long"),
    RefusedError("the model refused"),
    Pending("the answer comes later"),
)
ODD_IDS = ("../../escape", "/absolute", "a/b\\c:*?", "CON", "..", " ", "nul\0byte", "日本語 🙂", "x" * 5000)
ODD_SKILLS = (
    "Braces {question} {0} {{x}} {} and % signs %s %(name)s 100%, $HOME ${x}, \\1 \\n \\g<0>.",
    "# Heading\n\n```\na fence that is not closed\n\n<answer>no answer</answer>\n<!-- a comment -->\n---\nkey: value",
    "\n".join(f"- Rule {number}: be careful with line {number}." for number in range(5000)),
)
BROKEN: dict[str, bytes] = {"empty": b"", "no items": b"[]", "no UTF-8": b"\xff\xfe\x00\x80", "no form": b"{"}
"""What a data file may hold that is no data."""

TELLING = 6
"""Characters: shorter texts of a reference occur by chance."""

LONGEST_FEEDBACK = 20_000


class EnvironmentPromises(PluginConformance):
    """Part of `EnvironmentConformance`, which tells what a subclass gives."""

    kind = "env"
    judge_reply: ClassVar[str] = "{}"

    def right_reply(self, task: Task) -> str:
        """A reply of the target that solves `task`, whose reference is shown."""
        raise NotImplementedError("give right_reply(task): what the target says when it is right")

    @pytest.fixture
    def another(self, settings: Any, context: DriverContext) -> Any:
        """A second instance, as a resumed run or another worker makes it."""
        return self.made(settings, context)

    def solved(self, driver: Any, task: Task, reply: str | ChatReply, skill: str = "") -> tuple[Attempt, Score]:
        """One attempt with this reply to every call, and its score."""
        attempt = driver.attempt(task.hidden(), skill, ScriptedTarget(reply))
        assert isinstance(attempt, Attempt), f"attempt() returned a {type(attempt).__name__}"
        score = driver.score(task, attempt, ScriptedJudge(self.judge_reply))
        assert isinstance(score, Score), f"score() returned a {type(score).__name__}"
        return attempt, score

    def test_what_the_target_is_asked_depends_on_task_and_skill_alone(
        self, driver: Any, another: Any, tasks: list[Task]
    ) -> None:
        """Nothing of other tasks, of earlier attempts or of references that were scored with is kept for the next."""
        first = {task.id: asked(driver, task) for task in tasks}
        for task in tasks:
            self.solved(driver, task, self.right_reply(task))
        for instance in (driver, another):
            for task in reversed(tasks):
                assert asked(instance, task) == first[task.id], f"task {task.id} is asked otherwise another time"

    def test_no_text_of_a_reference_is_told_to_the_target(self, driver: Any, tasks: list[Task]) -> None:
        """What stands in a reference and not in the inputs is told in no prompt, however it was kept."""
        told = {task.id: asked(driver, task) for task in tasks}
        for task in tasks:
            shown = "\n".join([*texts_of(dict(task.inputs)), *task.files])
            others = "".join(text for name, text in told.items() if name != task.id)
            for text in texts_of(task.reference):
                if len(text) >= TELLING and text not in shown and text not in others:
                    assert text not in told[task.id], f"{text[:80]!r} of the reference of task {task.id} leaked"

    def test_an_attempt_that_was_stored_scores_the_same(self, driver: Any, another: Any, tasks: list[Task]) -> None:
        for task in tasks:
            for reply in (self.right_reply(task), "I do not know."):
                attempt, score = self.solved(driver, task, reply)
                state = json.loads(json.dumps(dict(attempt.state)))
                assert state == dict(attempt.state), "an attempt's state is JSON, which a resumed run reads back"
                stored = attrs.evolve(attempt, state=state)
                assert another.score(task, stored, ScriptedJudge(self.judge_reply)) == score

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
    def test_faults_of_a_call_are_let_pass(self, driver: Any, tasks: list[Task], fault: ModelError) -> None:
        """The kernel decides what each means: a missing outcome, a failed attempt, the end of the run; never a zero."""

        def fail(_: object) -> str:
            raise fault

        for kind in sorted(driver.targets):
            with pytest.raises(type(fault)):
                driver.attempt(tasks[0].hidden(), "", ScriptedTarget(fail, kind=kind))

    def test_a_judge_that_fails_is_no_low_score(self, driver: Any, tasks: list[Task]) -> None:
        """An environment that asks the judge lets its faults pass; others are not concerned."""
        judge = FailingJudge()
        for task in tasks:
            attempt = driver.attempt(task.hidden(), "", ScriptedTarget(self.right_reply(task)))
            try:
                driver.score(task, attempt, judge)
            except PassingError:
                continue
            assert not judge.asked, "a score was given although the judge had failed"

    @pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: ascii(odd[:12]))
    def test_ids_of_any_kind_do_no_harm(
        self, driver: Any, tasks: list[Task], odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An environment writes no file that is named by an id as it stands."""
        outer = tmp_path / "ids"
        inner = outer / "inner" / "innermost"
        inner.mkdir(parents=True)
        monkeypatch.chdir(inner)
        task = attrs.evolve(tasks[0], id=odd)
        _, score = self.solved(driver, task, self.right_reply(tasks[0]))
        assert score.hard == 1.0
        assert [path.name for path in outer.rglob("*")] == ["inner", "innermost"], "a file was written"
        for kind in sorted(driver.targets):
            target = ScriptedTarget("I do not know.", kind=kind)
            attempt = driver.attempt(task.hidden(), "", target)
            names = [*attempt.files, *(name for job in target.jobs for name in job.files)]
            assert all(is_inside(name) for name in names), f"files of an attempt have names below it, not {names}"

    @pytest.mark.parametrize("skill", ODD_SKILLS, ids=("signs", "form", "long"))
    def test_skills_of_any_kind_reach_the_target_whole(self, driver: Any, tasks: list[Task], skill: str) -> None:
        for kind in sorted(driver.targets):
            target = ScriptedTarget("I do not know.", kind=kind)
            driver.attempt(tasks[0].hidden(), skill, target)
            told = [message.text for call in target.messages[:1] for message in call]
            assert skill in "\n".join([*told, *(job.skill for job in target.jobs)])

    @pytest.mark.parametrize("piece", ["x", "word ", "<answer>", "- 1,234.5\n", '{"a": [', "<think>"])
    def test_long_replies_are_scored_and_told_in_short(self, driver: Any, tasks: list[Task], piece: str) -> None:
        """A feedback goes into prompts by the dozen."""
        attempt, score = self.solved(driver, tasks[0], piece * (200_000 // len(piece)))
        assert score.hard < 1.0
        assert len(score.feedback) <= LONGEST_FEEDBACK, "a feedback quotes the beginning of an answer, not all of it"
        assert any(len(turn.content) >= 100_000 for turn in attempt.trajectory), "the trajectory has the reply whole"

    @pytest.mark.parametrize("what", ["missing", "no parts", "the same ids", *BROKEN])
    def test_data_that_cannot_be_used_is_told_in_a_sentence(
        self, what: str, settings: Any, context: DriverContext, tmp_path: Path
    ) -> None:
        """`DataError` that names folder or file. Environments that read no `env.split_dir` are not asked."""
        source = getattr(context.common, "split_dir", None)
        if source is None or context.common.split_mode != "split_dir":
            pytest.skip("its data is in no env.split_dir")
        folder = tmp_path / "broken_split"
        named = spoil(what, Path(source), folder)
        common = attrs.evolve(context.common, split_dir=folder)
        driver = self.made(settings, attrs.evolve(context, common=common))
        with pytest.raises(DataError) as raised:
            driver.splits()
        assert named in str(raised.value), f"the sentence names {named!r}: {raised.value}"


class FailingJudge:
    """A `Judge` that is always busy. asked: how often it was."""

    asked = 0

    def chat(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        self.asked += 1
        raise PassingError("the judge is busy")


def asked(driver: Any, task: Task) -> str:
    """All that an attempt tells the target, of each kind that the environment works with, as one text.

    Files of an agent's workspace are among it where the environment made them; those of its data it only hands on.
    """
    told: list[str] = []
    for kind in sorted(driver.targets):
        target = ScriptedTarget("I do not know.", kind=kind)
        driver.attempt(task.hidden(), "The skill.", target)
        told += [f"{message.role}: {message.text}" for call in target.messages for message in call]
        for job in target.jobs:
            told += [job.prompt, job.skill, *sorted(job.files)]
            told += [file.decode("utf-8", "replace") for file in job.files.values() if isinstance(file, bytes)]
    return "\n".join(told)


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts_of(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from texts_of(entry)


def is_inside(name: str) -> bool:
    """Whether a name is a relative path that stays below its folder."""
    parts = Path(name.replace("\\", "/")).parts
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts and "\0" not in name


def spoil(what: str, source: Path, folder: Path) -> str:
    """Make a split at `folder` that cannot be used, of the sound one at `source`; what the error must name."""
    if what == "missing":
        return folder.name
    if what == "no parts":
        folder.mkdir()
        return folder.name
    shutil.copytree(source, folder)
    files = [path for path in sorted((folder / "train").rglob("*")) if path.suffix in (".json", ".jsonl", ".csv")]
    if what == "the same ids":
        for path in files:
            shutil.copyfile(path, folder / "val" / path.relative_to(folder / "train"))
        return folder.name
    for path in files:
        path.write_bytes(BROKEN[what])
    return folder.name if what == "no items" else files[0].name
