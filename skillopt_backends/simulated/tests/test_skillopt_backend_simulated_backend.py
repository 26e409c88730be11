"""The backend: typed faults, usage, deadlines, and the same replies for any order of threads."""

from __future__ import annotations

import json
import logging
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from skillopt_backend_simulated.backend import SimulatedModel, make_backend
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_backend_simulated_small_world import QUESTIONS, WORLD
from skillopt_kernel.errors import CallTimeout, ConfigError, ContextTooLong, PassingError, RefusedError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.parsing import extract_json
from skillopt_kernel.models.requests import ChatRequest, Message

CONTEXT = DriverContext(logger=logging.getLogger("test"), model="small")
ANALYST = "## Trajectories (1)\n\n### Trajectory 1: a\nIn which year was mill 1 built?"


def model(world_path: Path, role: str = "target", **settings: Any) -> SimulatedModel:
    return make_backend(SimulatedSettings(world=world_path, **settings), CONTEXT).open_chat(role)


def request(user: str, system: str = "Write the four digits of a year.", **more: Any) -> ChatRequest:
    return ChatRequest((Message("system", system), Message("user", user)), **{"stage": "rollout", **more})


def requests() -> list[ChatRequest]:
    return [request(str(item["question"])) for item in QUESTIONS]


def told(one: SimulatedModel, asked: ChatRequest) -> str:
    """What became of one call, with tries for what passes."""
    for _ in range(100):
        try:
            return one.complete(asked).text
        except PassingError:
            continue
        except RefusedError:
            return "(refused)"
    raise AssertionError("it never answered")


FAULTY: dict[str, Any] = {
    "rate_limits": 0.3,
    "server_errors": 0.2,
    "refusals": 0.1,
    "malformed_replies": 0.2,
    "empty_replies": 0.1,
}


def test_the_order_of_threads_changes_nothing(world_path: Path) -> None:
    asked = requests() * 2
    expected = [told(model(world_path, **FAULTY), one) for one in asked]
    assert len(set(expected)) > 20
    for seed in range(3):
        order = list(range(len(asked)))
        random.Random(seed).shuffle(order)
        fresh = model(world_path, **FAULTY)
        with ThreadPoolExecutor(16) as pool:
            found = dict(zip(order, pool.map(lambda index: told(fresh, asked[index]), order), strict=True))  # noqa: B023
        assert [found[index] for index in range(len(asked))] == expected


def test_a_new_model_goes_on_as_the_old_one_would_have(world_path: Path) -> None:
    """A killed run makes a new model in its middle; what it asks then is answered alike."""
    whole = model(world_path, "optimizer", **FAULTY)
    asked = [request(f"{ANALYST}\n{number // 3}", stage="analyst") for number in range(30)]
    expected = [told(whole, one) for one in asked]
    for cut in (1, 10, 17):
        assert [told(model(world_path, "optimizer", **FAULTY), one) for one in asked[cut:]] == expected[cut:]


def test_noise_tells_samples_apart_and_their_number_alone_counts(world_path: Path) -> None:
    asked = requests()[:10] * 8
    one = model(world_path, noise=0.5)
    expected = sorted((one.complete(each).text, each.messages[1].text) for each in asked)
    assert len(set(expected)) == 20, "each question is answered in both ways"
    other = model(world_path, noise=0.5)
    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(lambda each: (other.complete(each).text, each.messages[1].text), asked))
    assert found == expected


def test_a_request_with_a_seed_of_its_own_is_its_own_sample(world_path: Path) -> None:
    asked = [request(str(QUESTIONS[0]["question"]), seed=seed) for seed in range(40)]
    forward = [model(world_path, noise=0.5).complete(one).text for one in asked]
    one = model(world_path, noise=0.5)
    backward = [one.complete(each).text for each in reversed(asked)]
    assert forward == backward[::-1]
    assert len(set(forward)) == 2


def test_stage_and_deadline_do_not_change_the_reply(world_path: Path) -> None:
    one = model(world_path, malformed_replies=0.5)
    for asked in requests():
        again = ChatRequest(asked.messages, stage="test", deadline=time.monotonic() + 60)
        assert one.complete(asked) == one.complete(again)


def test_another_seed_is_another_model(world_path: Path) -> None:
    world_path.write_text(WORLD.replace("right_with: 1.0", "right_with: 0.5"), encoding="utf-8")
    first, second = (
        [model(world_path, seed=seed).complete(one).text for one in requests()[:20]] for seed in (1, 2)
    )  # fmt: skip
    assert first != second


def test_faults_of_a_call(world_path: Path) -> None:
    with pytest.raises(PassingError, match="too often") as limited:
        model(world_path, rate_limits=1.0).complete(requests()[0])
    assert limited.value.retry_after == 0.01
    with pytest.raises(PassingError, match="server error") as failed:
        model(world_path, server_errors=1.0).complete(requests()[0])
    assert failed.value.retry_after is None
    with pytest.raises(RefusedError):
        model(world_path, refusals=1.0).complete(requests()[0])


def test_faults_pass_when_they_are_not_certain(world_path: Path) -> None:
    one, failures = model(world_path, rate_limits=0.5), 0
    for asked in requests():
        for _ in range(50):
            try:
                one.complete(asked)
                break
            except PassingError:
                failures += 1
        else:
            raise AssertionError("it never answered")
    assert 15 < failures < 80


def test_the_context_has_a_limit(world_path: Path) -> None:
    world_path.write_text(f"{WORLD}faults: {{context_tokens: 50}}\n", encoding="utf-8")
    one = model(world_path)
    assert one.complete(request("In which year was mill 1 built?")).usage.prompt_tokens == 16
    with pytest.raises(ContextTooLong, match="50 are allowed"):
        one.complete(request("In which year was mill 1 built?" + " word" * 60))


def test_empty_replies(world_path: Path) -> None:
    reply = model(world_path, empty_replies=1.0).complete(requests()[0])
    assert (reply.text, reply.finish, reply.usage.completion_tokens) == ("", "empty", 0)


def test_malformed_replies_take_every_form(world_path: Path) -> None:
    one = model(world_path, "optimizer", malformed_replies=1.0)
    replies = [one.complete(request(f"{ANALYST}\n{n}", "Edit budget: 4.", stage="analyst")) for n in range(60)]
    forms = {
        "cut": [reply for reply in replies if reply.finish == "length"],
        "prose": [reply for reply in replies if reply.text.startswith("Sorry")],
        "quotes": [reply for reply in replies if reply.text.startswith("{'")],
        "fenced": [reply for reply in replies if "```json" in reply.text],
    }
    assert sum(map(len, forms.values())) == 60 and all(forms.values())
    assert all(extract_json(reply.text) is None for reply in forms["prose"])
    assert all(isinstance(extract_json(reply.text), dict) for reply in forms["fenced"])


def test_malformed_answers_of_a_target(world_path: Path) -> None:
    one = model(world_path, malformed_replies=1.0)
    texts = [one.complete(asked).text for asked in requests()]
    assert any("<answer>" not in text for text in texts)
    assert not any(text.rstrip().endswith("</answer>") for text in texts)


def test_usage_and_the_token_limit(world_path: Path) -> None:
    reply = model(world_path).complete(request("In which year was mill 1 built?"))
    assert reply.finish == "stop"
    assert (reply.usage.calls, reply.usage.usd) == (1, 0.0)
    assert reply.usage.completion_tokens == -(-len(reply.text) // 4)
    cut = model(world_path).complete(request("In which year was mill 1 built?", max_tokens=3))
    assert (cut.text, cut.finish, cut.usage.completion_tokens) == (reply.text[:12], "length", 3)


def test_latency_is_waited_for_but_not_beyond_the_deadline(world_path: Path) -> None:
    began = time.monotonic()
    model(world_path, latency=0.05).complete(requests()[0])
    assert time.monotonic() - began > 0.005
    began = time.monotonic()
    with pytest.raises(CallTimeout, match="longer than the call had left"):
        model(world_path, latency=60.0).complete(request("x", deadline=began + 0.05))
    assert time.monotonic() - began < 50


def test_the_world_says_what_the_settings_leave_out(world_path: Path) -> None:
    world_path.write_text(f"{WORLD}faults: {{empty_replies: 1.0}}\n", encoding="utf-8")
    assert model(world_path).complete(requests()[0]).finish == "empty"
    assert model(world_path, empty_replies=0.0).complete(requests()[0]).finish == "stop"


def test_all_roles(world_path: Path) -> None:
    backend = make_backend(SimulatedSettings(world=world_path), CONTEXT)
    assert {role: set(ways) for role, ways in backend.capabilities.items()} == {
        "optimizer": {"chat"},
        "target": {"chat"},
        "judge": {"chat"},
    }
    question = str(QUESTIONS[0]["question"])
    assert "1700" in backend.open_chat("target").complete(request(question)).text
    verdict = backend.open_chat("judge").complete(request(f"{question}\nAnswer: 1700", stage="judge")).text
    assert json.loads(verdict)["correct"] is True
    reply = backend.open_chat("optimizer").complete(request(ANALYST, "Edit budget: 4.", stage="analyst")).text
    assert json.loads(reply)["patch"]["edits"]
    assert backend.open_chat("target").model == "small"
    [(severity, sentence)] = backend.check("target")
    assert severity == "ok" and "2 kinds of task, 6 rules and 40 questions" in sentence
    with pytest.raises(ConfigError, match="plays optimizer, target, judge"):
        backend.open_chat("referee")
    with pytest.raises(ConfigError, match="no agent's job"):
        backend.open_agent("target")
