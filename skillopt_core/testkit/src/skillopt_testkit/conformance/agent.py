"""What a backend that runs an agent program must keep, with a stand-in for the program and a loopback endpoint."""

from __future__ import annotations

import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from skillopt_kernel.errors import CallTimeout
from skillopt_kernel.models.requests import AgentJob, AgentResult
from skillopt_kernel.plugins.discovery import make_driver

from skillopt_testkit.conformance.backend import BackendConformance
from skillopt_testkit.conformance.http_chat import REPLIES, SECONDS, SECRET
from skillopt_testkit.servers import ChatServer, Reply, Script

SKILL = "# Sorting\n\n- Sort by the second column. 🦉 größer\n"
SENTENCE = "Sort by the second column. 🦉 größer"
PROGRAM_FAULTS = {"killed child": "killed", "malformed": "malformed", "old program": "old"}
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


class AgentConformance(BackendConformance):
    """Subclass it and give `name`, `program`, `settings_for` and `shell`.

    tools        the names of the tools that a job which may write offers to the model; `None`: not looked at
    tokens_told  whether the program tells tokens; hides_key: whether its commands do not get the endpoint's key
    """

    faults = (
        "rejected", "wrong key", "unknown model", "rate limit", "server error", "too long", "empty", "hang", "dropped",
        "malformed", "killed child", "missing program", "old program",
    )  # fmt: skip
    secret = SECRET
    tools: ClassVar[frozenset[str] | None] = None
    tokens_told: ClassVar[bool] = True
    hides_key: ClassVar[bool] = True

    def program(self, folder: Path, fault: str = "") -> Path:
        """A stand-in for the program; `fault`: "killed" (by a signal), "malformed" (output that ends too early), "old".

        It asks its endpoint as the real one does, and runs the commands that the model asks for.
        """
        raise NotImplementedError("give program(folder, fault)")

    def settings_for(self, server: ChatServer, path: Path) -> Any:
        """Settings for the program at a path and that endpoint, with the key `SECRET`."""
        raise NotImplementedError("give settings_for(server, path)")

    def shell(self, command: str) -> Mapping[str, Any]:
        """The call by which the model has a command run, as Chat Completions have it."""
        raise NotImplementedError("give shell(command)")

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder of the test's own; temporary files are made in it, too."""
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        return tmp_path

    @pytest.fixture
    def server(self) -> Iterator[ChatServer]:
        with ChatServer(["ok"]) as server:
            yield server

    @pytest.fixture
    def settings(self, server: ChatServer, folder: Path) -> Any:
        return self.settings_for(server, self.program(folder / "programs"))

    def job(self, prompt: str = "Sort given.csv.", **options: Any) -> AgentJob:
        files = {"given.csv": b"b,1\na,2\n"}
        return AgentJob(prompt, SKILL, **{"files": files, "collect": ("*.csv",), "edits": True, **options})

    def commands(self, *commands: str, answer: str = "Done.") -> Script:
        """A model that has these commands run, one after the other, and then answers."""

        def script(body: Mapping[str, Any]) -> Reply:
            results = sum(message["role"] == "tool" for message in body["messages"])
            if results < len(commands):
                return Reply(tool_calls=(self.shell(commands[results]),), usage=USAGE)
            return Reply(answer, usage=USAGE)

        return script

    @contextmanager
    def opened(self, script: Script, folder: Path, context: Any, fault: str = "") -> Iterator[tuple[Any, ChatServer]]:
        """The backend with its program and an endpoint; whatever runs is ended."""
        with ChatServer(script) as server:
            settings = self.settings_for(server, self.program(folder / "programs", fault))
            driver = make_driver(self.kind, self.name, settings, context)
            try:
                yield driver, server
            finally:
                driver.close()

    def done(self, script: Script, folder: Path, context: Any, job: AgentJob) -> tuple[AgentResult, ChatServer]:
        """What a job came to, and the server that it was done with."""
        with self.opened(script, folder, context) as (driver, server):
            return driver.open_agent("target").run(job), server

    # The error matrix ------------------------------------------------------------------------------------------

    def ending(self, driver: Any, deadline: float | None = None) -> str:
        result = driver.open_agent("target").run(self.job(deadline=deadline))
        return "stop" if result.message else "empty"

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        over = threading.Event()

        def script(body: Mapping[str, Any]) -> Reply:
            if fault == "hang":
                over.wait(SECONDS)
            return REPLIES.get(fault, Reply("late")) if fault not in PROGRAM_FAULTS else Reply("fine")

        with tempfile.TemporaryDirectory() as name, ChatServer(script) as server:
            path = self.program(Path(name, "programs"), PROGRAM_FAULTS.get(fault, ""))
            if fault == "missing program":
                path.unlink()
            driver = make_driver(self.kind, self.name, self.settings_for(server, path), context)
            try:
                yield driver
            finally:
                over.set()
                driver.close()

    # What a job is told, does and leaves -----------------------------------------------------------------------

    def test_the_model_gets_prompt_and_skill_and_the_intended_tools(self, folder: Path, context: Any) -> None:
        _, server = self.done(self.commands(), folder, context, self.job("Sort 🦉 given.csv."))
        received = server.requests[0].body
        text = json.dumps(received, ensure_ascii=False)
        assert "Sort 🦉 given.csv." in text
        assert SENTENCE in text, "the skill did not reach the model"
        if self.tools is not None:
            offered = {tool.get("name") or tool.get("function", {}).get("name") for tool in received.get("tools", ())}
            assert offered == self.tools

    def test_turns_files_and_usage_come_back(self, folder: Path, context: Any) -> None:
        script = self.commands("sort given.csv > sorted.csv", "cat sorted.csv; exit 3", answer="It is sorted.")
        result, _ = self.done(script, folder, context, self.job())
        assert result.message == "It is sorted."
        assert result.files == {"given.csv": b"b,1\na,2\n", "sorted.csv": b"a,2\nb,1\n"}
        calls = [call for turn in result.trajectory for call in turn.tool_calls]
        assert [turn.role for turn in result.trajectory] == ["assistant", "tool", "assistant", "tool", "assistant"]
        assert "sort given.csv" in calls[0].arguments
        assert "a,2\nb,1" in result.trajectory[3].content, "what a command printed is what reflection needs most"
        assert result.trajectory[3].tool_call_id == calls[1].id
        assert result.trajectory[4].content == "It is sorted."
        assert result.usage.calls == 1
        if self.tokens_told:
            assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (33, 21), "of all its requests"
            assert result.usage.cached_tokens == 15
        else:
            assert result.usage.prompt_tokens is None and result.usage.unknown_calls == 1

    def test_an_empty_answer_is_an_empty_answer(self, folder: Path, context: Any) -> None:
        result, _ = self.done(self.commands("echo hello", answer=""), folder, context, self.job())
        assert result.message == ""

    def test_without_a_skill_none_is_mentioned(self, folder: Path, context: Any) -> None:
        job = AgentJob("Sort given.csv.", " \n", {"given.csv": b""})
        _, server = self.done(self.commands(), folder, context, job)
        assert "trained-skill" not in json.dumps(server.requests[0].body)

    def test_long_texts_arrive_whole(self, folder: Path, context: Any) -> None:
        """O-W2: neither prompt nor skill is on a command line."""
        prompt, skill = "größer 🦉 " * 6_000, "# Long\n\n" + "- 🦉 klein\n" * 3_600
        job = AgentJob(prompt.strip(), skill)
        _, server = self.done(self.commands(), folder, context, job)
        text = json.dumps(server.requests[0].body, ensure_ascii=False)
        assert prompt.strip() in text
        assert json.dumps(skill.strip(), ensure_ascii=False)[1:-1] in text

    def test_no_variable_of_the_operator_reaches_a_command(
        self, folder: Path, context: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """O-X3 and O-X4: neither keys nor switches that allow everything."""
        foreign = {
            "AWS_SECRET_ACCESS_KEY": "leak-0123456789",
            "COPILOT_ALLOW_ALL": "leak-allow-all",
            "FOREIGN": "leak-1",
        }
        for name, value in foreign.items():
            monkeypatch.setenv(name, value)
        result, server = self.done(self.commands("env"), folder, context, self.job())
        printed = next(turn.content for turn in result.trajectory if turn.role == "tool")
        assert "PATH=" in printed, "the command ran"
        assert "leak-" not in json.dumps([received.body for received in server.requests]) + printed
        assert f"HOME={Path.home()}\n" not in printed
        if self.hides_key:
            assert SECRET not in printed

    def test_jobs_at_once_have_folders_of_their_own_and_leave_nothing(self, folder: Path, context: Any) -> None:
        def script(body: Mapping[str, Any]) -> Reply:
            results = [message for message in body["messages"] if message["role"] == "tool"]
            if results:
                return Reply(f"It is {json.dumps(results[-1]['content'])}")
            return Reply(tool_calls=(self.shell("cat number.txt; ls"),))

        def job(number: int) -> AgentJob:
            return AgentJob("Read.", SKILL, {"number.txt": b"number-%d-" % number, f"only-{number}": b""}, edits=True)

        with self.opened(script, folder, context) as (driver, _):
            agent = driver.open_agent("target")
            with ThreadPoolExecutor(self.parallel) as pool:
                results = list(pool.map(lambda number: agent.run(job(number)), range(self.parallel)))
        for number, result in enumerate(results):
            assert f"number-{number}-" in result.message
            assert [word for word in result.message.replace("\\n", " ").split() if word.startswith("only-")] == [
                f"only-{number}"
            ]
        assert list((folder / "temporary").iterdir()) == []

    @pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system does not tell what runs")
    def test_a_deadline_ends_all_that_a_job_has_started(self, folder: Path, context: Any) -> None:
        number = f"{random.SystemRandom().randint(10**6, 10**7)}.25"  # tells this test's processes from all others
        script = self.commands(f"sleep {number} & sleep {number}")
        with self.opened(script, folder, context) as (driver, _):
            for seconds in (3.0, 12.0, 40.0):  # a busy machine may not have begun the command when the time is over
                seen, over = threading.Event(), threading.Event()
                watcher = threading.Thread(target=_watch, args=(number, seen, over))
                watcher.start()
                try:
                    with pytest.raises(CallTimeout):
                        driver.open_agent("target").run(self.job(deadline=time.monotonic() + seconds))
                finally:
                    over.set()
                    watcher.join()
                if seen.is_set():
                    break
        assert seen.is_set(), "the command was never begun"
        ends = time.monotonic() + SECONDS
        while _running(number) and time.monotonic() < ends:
            time.sleep(0.01)
        assert not _running(number)
        assert list((folder / "temporary").iterdir()) == []


def _watch(number: str, seen: threading.Event, over: threading.Event) -> None:
    while not over.wait(0.02):
        if _running(number):
            seen.set()
            return


def _running(number: str) -> bool:
    """Whether a `sleep` of so many seconds runs."""
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended meanwhile
                continue
            if words[0].endswith(b"sleep") and number.encode() in words:
                return True
    return False
