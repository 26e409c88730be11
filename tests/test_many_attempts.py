"""200 attempts at once through one backend: all answered, the limit kept, and no thread or connection left behind."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import DriverContext
from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_kernel.plugins.discovery import load_manifest, make_driver, settings_class
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

ATTEMPTS, SECONDS = 200, 120.0


class Together:
    """Answers nothing before so many requests are waiting, and from then on at once.

    Should one of them be lost on the way, which a busy machine may do, the others are answered after a while: the
    lost one is asked again, as the kernel does, and the test goes on.
    """

    PATIENCE = 30.0

    def __init__(self, count: int) -> None:
        self._missing, self._lock, self._all_here = count, threading.Lock(), threading.Event()

    def __call__(self, _: Mapping[str, Any]) -> str:
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._all_here.set()
        if not self._all_here.wait(self.PATIENCE):
            self._all_here.set()
        return "<answer>ok</answer>"


def comes_true(condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < ends:
        time.sleep(0.02)
    return condition()


def sockets() -> int:
    """The sockets that this process holds open."""
    folder, found = Path("/proc/self/fd"), 0
    for entry in folder.iterdir():
        try:
            found += "socket" in str(entry.readlink())
        except OSError:  # the folder's own descriptor, closed meanwhile
            continue
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts sockets where Linux lists them")
@pytest.mark.parametrize(
    ("label", "variable"),
    [
        ("openai", "OPENAI_BASE_URL"),
        ("compat", "OPENAI_COMPATIBLE_BASE_URL"),
        ("qwen", "QWEN_CHAT_BASE_URL"),
        ("minimax", "MINIMAX_BASE_URL"),
    ],
)
def test_attempts_leave_no_thread_and_no_connection(
    label: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project.make(tmp_path, train=ATTEMPTS, selection=4, test=0)
    monkeypatch.chdir(project.folder)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    env = {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": ATTEMPTS, "exec_timeout": 300}
    project.write("run.yaml", json.dumps({"env": env, "model": {"backend": label}}))
    with ChatServer(Together(ATTEMPTS)) as server:
        monkeypatch.setenv(variable, server.url)
        threads, held = set(threading.enumerate()), sockets()
        done = evaluate("run.yaml", "skill.md", "train", out="evaluated")
        assert done.by_kind["overall"]["scored"] == ATTEMPTS
        assert ATTEMPTS // 2 <= server.peak <= ATTEMPTS
        assert server.peak <= server.connections <= ATTEMPTS + 10, "a connection for each call in flight, and no more"
        assert comes_true(lambda: server.connected == 0), f"{server.connected} connections are left open"
        assert comes_true(lambda: set(threading.enumerate()) <= threads), threading.enumerate()
        assert comes_true(lambda: sockets() <= held), "a socket is left open"
    outcomes = project.lines(next((tmp_path / "evaluated").rglob("results.jsonl")))
    assert len(outcomes) == ATTEMPTS


@pytest.mark.parametrize("name", ["openai_chat", "openai_compatible", "qwen_chat", "minimax_chat"])
def test_the_limit_holds_however_many_ask(name: str) -> None:
    most = 40
    with ChatServer(Together(most)) as server:
        settings = settings_class(load_manifest("backend", name))
        assert settings is not None
        address = "openai_base_url" if name == "openai_chat" else "base_url"
        context = DriverContext(logger=logging.getLogger("test"), role="target")
        backend = make_driver("backend", name, settings(**{address: server.url}), context)
        caller = ModelCaller(backend.open_chat("target"), role="target", limit=EndpointLimit(most))
        request = ChatRequest((Message("user", "hello"),), stage="rollout")
        with ThreadPoolExecutor(ATTEMPTS) as pool:
            texts = list(pool.map(lambda _: caller.complete(request).text, range(ATTEMPTS)))
        assert texts == ["<answer>ok</answer>"] * ATTEMPTS
        assert most // 2 <= server.peak <= most
        backend.close()
        assert comes_true(lambda: server.connected == 0)
