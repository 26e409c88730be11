"""A sound environment, and one for each fault that the environment suite is to find."""

import itertools
import json
import sqlite3
import threading
from pathlib import Path

import attrs
from skillopt_kernel.errors import Cancelled, DataError, ModelError, PassingError
from skillopt_kernel.models.requests import AgentJob, Message
from skillopt_kernel.records import Attempt, Score, Splits, Task


class Sound:
    """Sums out of a folder: asked once, with the skill in front; the answer is the reply, a chat model's or agent's."""

    targets = frozenset({"chat", "agent"})
    isolation = "thread"

    def __init__(self, folder):
        self.folder = folder

    def splits(self):
        if not self.folder.is_dir():
            raise DataError(f"there is no folder {self.folder}")
        parts = [tuple(map(self.task, self.rows(part))) for part in ("train", "val", "test")]
        if {task.id for task in parts[0]} & {task.id for task in parts[1]}:
            raise DataError(f"{self.folder}: a task of train is one of val as well")
        return Splits(*parts)

    def rows(self, part):
        path = self.folder / part / "items.json"
        try:
            rows = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: {error}") from error
        if not rows:
            raise DataError(f"{path}: there is no row")
        return rows

    def task(self, row):
        return Task(row["id"], "sum", {"question": row["question"]}, row["answer"])

    def attempt(self, task, skill, target):
        if target.kind == "agent":
            job = AgentJob(task.inputs["question"], skill, self.files(task))
            output = target.agent(job).message.strip()
        else:
            messages = [Message("system", skill), Message("user", task.inputs["question"])]
            output = target.chat(messages).text.strip()
        return Attempt(output, target.trajectory, self.state(task), ended=None if output else "empty_answer")

    def files(self, task):
        return {"question.txt": task.inputs["question"].encode()}

    def state(self, task):
        return {"length": len(task.inputs["question"])}

    def score(self, task, attempt, judge):
        right = float(attempt.output == task.reference)
        return Score(right, right, "Right." if right else f"Wrong: it is {task.reference}.")


class WorksWithNothing(Sound):
    targets = frozenset()


class SameIds(Sound):
    def splits(self):
        loaded = super().splits()
        return attrs.evolve(loaded, selection=loaded.train)


class OtherTasksEachTime(Sound):
    made = itertools.count()

    def task(self, row):
        return attrs.evolve(super().task(row), kind=str(next(self.made)))


class NeverRight(Sound):
    def score(self, task, attempt, judge):
        return Score(0.0, 0.0, "Wrong.")


class AlwaysRight(Sound):
    def score(self, task, attempt, judge):
        return Score(1.0, 1.0, "Right.")


class Silent(Sound):
    def score(self, task, attempt, judge):
        return attrs.evolve(super().score(task, attempt, judge), feedback="")


class ForgetsTheSkill(Sound):
    def attempt(self, task, skill, target):
        return super().attempt(task, "" if target.kind == "chat" else skill, target)


class TellsAgentsTheSkillInThePrompt(Sound):
    def attempt(self, task, skill, target):
        inputs = {"question": f"{skill}\n{task.inputs['question']}"}
        return super().attempt(attrs.evolve(task, inputs=inputs) if target.kind == "agent" else task, skill, target)


class Counts(Sound):
    """Its feedback depends on how often it was asked."""

    asked = 0

    def score(self, task, attempt, judge):
        self.asked += 1
        right = attempt.output == task.reference
        return Score(float(right), float(right), f"This is score {self.asked}.")


class ServesOneThread(Sound):
    """Keeps a connection, which is for the thread that made it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.database = sqlite3.connect(":memory:")

    def score(self, task, attempt, judge):
        self.database.execute("select 1")
        return super().score(task, attempt, judge)


class SwallowsTheDeadline(Sound):
    def attempt(self, task, skill, target):
        try:
            return super().attempt(task, skill, target)
        except Cancelled:
            return Attempt("")


class SwallowsFaults(Sound):
    """Takes an outage for a wrong answer."""

    def attempt(self, task, skill, target):
        try:
            return super().attempt(task, skill, target)
        except ModelError:
            return Attempt("", ended="empty_answer")


class ForgetsTheConversation(Sound):
    def attempt(self, task, skill, target):
        done = super().attempt(task, skill, target)
        return attrs.evolve(done, trajectory=done.trajectory[:1])


class KeepsALock(Sound):
    def state(self, task):
        return {"lock": threading.Lock()}


class KeepsTuples(Sound):
    def state(self, task):
        return {"turns": (1, 2)}


class ScoresFromMemory(Sound):
    """Scores with what this instance saw in the attempt; a resumed run has another instance."""

    def attempt(self, task, skill, target):
        done = super().attempt(task, skill, target)
        self.seen = {**getattr(self, "seen", {}), task.id: done.output}
        return done

    def score(self, task, attempt, judge):
        output = getattr(self, "seen", {}).get(task.id, "")
        return super().score(task, attrs.evolve(attempt, output=output), judge)


class DescribesOnTwoLines(Sound):
    def describe(self, task):
        return f"{task.id}\n{task.inputs['question']}"


class LosesEvidence(Sound):
    """The analysts are told what they have not asked for another time."""

    told = itertools.count()

    def evidence(self, task, attempt):
        return {"Evidence": f"This is evidence {next(self.told)}."}


class DropsThePayload(Sound):
    def prompts(self):
        return {"analyst_failure": 'Think. {"edits": [up to {{budget}} of {{schema}}]}'}


class RemembersReferences(Sound):
    """Tells the target an answer once it has scored with it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.known = {}

    def score(self, task, attempt, judge):
        self.known[task.id] = task.reference
        return super().score(task, attempt, judge)

    def attempt(self, task, skill, target):
        return super().attempt(task, skill + self.known.get(task.id, ""), target)


class LeavesTheReferenceInTheWorkspace(Sound):
    """Keeps the references when it loads the splits, and lays them beside the question."""

    def task(self, row):
        self.known = {**getattr(self, "known", {}), row["id"]: row["answer"]}
        return super().task(row)

    def files(self, task):
        return {"solution.txt": self.known[task.id].encode()}


class AsksOtherwiseEachTime(Sound):
    calls = itertools.count()

    def attempt(self, task, skill, target):
        return super().attempt(task, f"{skill} Call {next(self.calls)}.", target)


class WritesFilesById(Sound):
    def attempt(self, task, skill, target):
        name = "".join(letter for letter in task.id if letter.isalpha())[:9] or "id"
        Path(name).write_text("x", "utf-8")
        return super().attempt(task, skill, target)


class NamesFilesById(Sound):
    def files(self, task):
        return {f"{task.id}.txt": b"x"}


class FillsTheSkill(Sound):
    def attempt(self, task, skill, target):
        return super().attempt(task, skill.replace("{question}", task.inputs["question"]), target)


class CutsTheSkill(Sound):
    def attempt(self, task, skill, target):
        return super().attempt(task, skill[:10_000], target)


class QuotesAll(Sound):
    def score(self, task, attempt, judge):
        return attrs.evolve(super().score(task, attempt, judge), feedback=f"The answer: {attempt.output}")


class LetsAnyErrorOfItsDataPass(Sound):
    def rows(self, part):
        return json.loads((self.folder / part / "items.json").read_text("utf-8"))


class NamesNoFile(Sound):
    def splits(self):
        try:
            return super().splits()
        except DataError as error:
            raise DataError("the data cannot be used") from error


class TakesAFailedJudgeForZero(Sound):
    def score(self, task, attempt, judge):
        try:
            judge.chat([Message("user", attempt.output)])
        except PassingError:
            return Score(0.0, 0.0, "Wrong.")
        return super().score(task, attempt, judge)
