"""Workers that are killed, crash, hang or cannot be made; what they are told and what is left of them."""

import contextlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from skillopt_executor_processes.executor import make_executor
from skillopt_executor_processes.settings import ProcessesSettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.execution import AttemptJob
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.worker import Workplace
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_testkit.conformance.executor import Calls, ExecutorConformance, is_there, job
from skillopt_testkit.rehearsal.environment import RehearsalEnvironment, RehearsalSettings

results = ExecutorConformance.results
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc")


class Made:
    """Executors of one test, closed at its end."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.stopping = threading.Event()

    def __call__(self, workers: int = 1, name: str = "rehearsal", settings: Any = None, **options: Any) -> Any:
        common = EnvSettings(name=name, workers=workers)
        context = DriverContext(logging.getLogger("skillopt.test"), seed=7, common=common)
        told = settings or RehearsalSettings()
        environment = RehearsalEnvironment(RehearsalSettings(), context)
        place = Workplace(environment, name, told, common, self.stopping)
        self.all.append(make_executor(ProcessesSettings(**options), evolve(context, common=place)))
        return self.all[-1]


@pytest.fixture
def made() -> Iterator[Made]:
    made = Made()
    yield made
    for executor in made.all:
        executor.close()


def one(executor: Any, asked: AttemptJob, calls: Calls | None = None) -> Any:
    (result,) = results(None, executor, [asked], calls)  # type: ignore[arg-type]
    return result


def worker_of(executor: Any) -> int:
    result = one(executor, job("who"))
    return int(result.attempt.state["worker"])


def is_gone(worker: int) -> bool:
    """Whether nothing is left of a worker and of what it has started, the group that it led; corpses do not count."""
    groups = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, _, group = status.read_text().rpartition(")")[2].split()[:3]
            groups |= {int(group)} if state != "Z" else set()
    return worker not in groups


def test_a_killed_workers_job_is_lost_and_the_next_one_has_a_new_worker(made: Made) -> None:
    executor = made()
    first = worker_of(executor)

    def kill(request: ChatRequest) -> ChatReply:
        os.kill(first, signal.SIGKILL)
        return ChatReply("four")

    lost = one(executor, job("t"), Calls(kill))
    assert lost.lost == f"worker process {first} ended by signal 9"
    assert (lost.score, lost.missing, lost.attempt) == (None, None, None)
    assert one(executor, job("t")).score.hard == 1.0
    assert worker_of(executor) != first


def test_a_worker_that_is_killed_between_jobs_is_replaced_and_nothing_is_lost(made: Made) -> None:
    executor = made()
    first = worker_of(executor)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert worker_of(executor) != first


def test_a_worker_lost_while_it_scores_has_made_its_attempt(made: Made) -> None:
    lost = one(made(), job("t", score=["end"]))
    assert lost.lost.endswith("ended with exit code 7; it said last: about to crash")
    assert lost.attempt.output == "four"


def test_an_attempt_that_hangs_is_ended_at_its_time_and_scored(made: Made) -> None:
    executor = made()
    first = worker_of(executor)
    began = time.monotonic()
    hung = evolve(job("t", ["child", "hang"]), attempt_timeout=0.5)
    result = one(executor, hung)
    assert time.monotonic() - began < 20
    assert result.attempt.ended == "attempt_timeout"
    assert (result.score.hard, result.score.feedback.partition(".")[0]) == (0.0, "The attempt ran out of time")
    assert is_gone(first)


def test_what_was_said_before_an_attempt_hung_is_kept(made: Made) -> None:
    result = one(made(), evolve(job("t", ["ask", "hang"]), attempt_timeout=2.0))
    assert [turn.role for turn in result.attempt.trajectory] == ["user", "assistant"]
    assert result.attempt.usage.prompt_tokens == 10


def test_scoring_that_hangs_is_ended_and_no_fault_of_the_target(made: Made) -> None:
    result = one(made(), evolve(job("t", score=["hang"]), attempt_timeout=2.0))
    assert result.missing.reason == "environment" and "env.attempt_timeout (2 s)" in result.missing.message
    assert result.attempt.output == "four", "only scoring is to be asked again"


def test_a_run_that_is_given_up_ends_what_hangs(made: Made) -> None:
    executor = made()
    first = worker_of(executor)
    threading.Timer(0.2, made.stopping.set).start()
    result = one(executor, job("t", ["hang"]))
    assert result.missing.reason == "cancelled"
    assert not is_there(first)


def test_closing_ends_a_worker_that_is_at_work_and_what_it_has_started(made: Made, tmp_path: Path) -> None:
    executor = made(settings=RehearsalSettings(marks=tmp_path))
    executor.submit(job("t", ["child", "hang"]), Calls().given, lambda result: None)
    mark = tmp_path / "t.attempt"
    while not mark.exists() or not mark.read_text().strip():
        time.sleep(0.01)
    executor.close()
    assert is_gone(int(mark.read_text()))


def test_no_credential_is_in_a_workers_variables_or_arguments(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234567890")
    monkeypatch.setenv("OPENAI_COMPATIBLE_TARGET_API_KEY", "sk-secret-1234567890")
    monkeypatch.setenv("LAB_DATA", "there")
    told = one(made(worker_variables=("LAB_DATA",)), job("t", ["variables"])).attempt.state["told"]
    assert "sk-secret" not in told
    assert json.loads(told)["variables"]["LAB_DATA"] == "there"
    assert "PATH" in json.loads(told)["variables"]
    assert "LAB_DATA" not in json.loads(one(made(), job("t", ["variables"])).attempt.state["told"])["variables"]


def test_a_worn_worker_is_renewed(made: Made) -> None:
    executor = made(worker_attempts=2)
    workers = [worker_of(executor) for _ in range(5)]
    assert workers[0] == workers[1] != workers[2] == workers[3] != workers[4]
    assert not any(is_there(worker) for worker in workers[:4])


def test_what_an_environment_cannot_send_is_a_sentence(made: Made) -> None:
    executor = made()
    failure = one(executor, job("t", ["unsendable"])).failure
    assert isinstance(failure, SkillOptError)
    assert "the outcome of task 't' cannot be sent" in str(failure) and "JSON values for `state`" in str(failure)
    assert one(executor, job("t")).score.hard == 1.0, "the worker goes on"


def test_what_cannot_be_read_here_is_a_sentence_and_harms_no_later_job(made: Made) -> None:
    executor = made()
    failure = one(executor, job("t", ["unreadable"])).failure
    assert isinstance(failure, SkillOptError)
    assert "the outcome of task 't' cannot be read" in str(failure) and "rehearsed_here" in str(failure)
    result = one(executor, job("next", attempt_timeout=30.0))
    assert (result.score.hard, result.attempt.output) == (1.0, "four")


def test_a_reply_that_cannot_be_sent_is_a_fault_of_that_attempt(made: Made) -> None:
    executor = made()
    result = one(executor, job("t"), Calls(lambda request: ChatReply("four", (threading.Lock(),))))  # type: ignore[arg-type]
    assert result.missing.reason == "environment" and "a reply cannot be sent" in result.missing.message
    assert one(executor, job("next")).score.hard == 1.0


def test_a_task_that_cannot_be_sent_is_a_sentence(made: Made) -> None:
    executor = made()
    asked = job("t")
    failure = one(executor, evolve(asked, task=evolve(asked.task, inputs={"f": lambda: None}))).failure
    assert isinstance(failure, SkillOptError) and "the task 't' cannot be sent" in str(failure)
    assert one(executor, job("t")).score.hard == 1.0


@frozen
class Locked:
    lock: Any


def test_settings_that_cannot_be_sent_are_a_sentence(made: Made) -> None:
    with pytest.raises(SkillOptError, match="the settings of the environment 'rehearsal' cannot be sent"):
        made(settings=Locked(threading.Lock()))


def test_an_environment_that_a_worker_cannot_make_ends_the_run_with_its_reason(made: Made) -> None:
    failure = one(made(settings=EnvSettings()), job("t")).failure
    assert isinstance(failure, SkillOptError)
    assert "'rehearsal'" in str(failure) and "no attribute 'isolation'" in str(failure)


def test_workers_that_cannot_start_at_all_end_the_run(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = made()
    monkeypatch.setattr("sys.path", [])  # where a worker looks for its modules, too
    failure = one(executor, job("t")).failure
    assert isinstance(failure, SkillOptError)
    assert "no worker process can be started" in str(failure) and "ModuleNotFoundError" in str(failure)
