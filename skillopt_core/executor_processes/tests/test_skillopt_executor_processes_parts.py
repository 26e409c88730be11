"""Pieces of the executor: variables, errors that travel, and the two ends of a pipe."""

import os
import pickle

import pytest
from skillopt_executor_processes.messages import NotSendable, Pipe, portable
from skillopt_executor_processes.variables import variables_for_workers
from skillopt_kernel.errors import (
    ConfigError,
    EnvironmentFailure,
    HookError,
    ModelError,
    PassingError,
    PermanentError,
    SkillOptError,
    UnusableReply,
)


def test_a_worker_gets_what_the_system_needs_and_what_is_named() -> None:
    environ = {
        "PATH": "p", "HOME": "h", "LC_ALL": "C", "PYTHONPATH": "x", "OPENAI_API_KEY": "sk", "AZURE_OPENAI_TOKEN": "t",
        "HTTPS_PROXY": "http://me:pass@host", "ALFWORLD_DATA": "d", "MY_LAB": "l",
    }  # fmt: skip
    assert set(variables_for_workers(environ, ())) == {"PATH", "HOME", "LC_ALL", "PYTHONPATH"}
    more = variables_for_workers(environ, ("ALFWORLD_DATA", "my_lab", "ABSENT"))
    assert (more["ALFWORLD_DATA"], more["MY_LAB"]) == ("d", "l")
    assert "ABSENT" not in more


class Odd(PermanentError):
    """Of a backend that did not think of pickling."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(f"{message} ({code})")


@pytest.mark.parametrize(
    "error",
    [
        PassingError("busy", 2.5), PermanentError("no key; set one"), ConfigError("a: wrong", "b: wrong"),
        EnvironmentFailure("gone"), KeyError("x"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_arrives_as_what_it_is(error: Exception) -> None:
    arrived = pickle.loads(pickle.dumps(portable(error)))
    assert (type(arrived), str(arrived)) == (type(error), str(error))
    assert getattr(arrived, "retry_after", None) == getattr(error, "retry_after", None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Odd(3, "no key"), PermanentError),
        (UnusableReply("no JSON", "head"), ModelError),
        (HookError("skillopt_gate", "mine", ValueError("x")), SkillOptError),
        (type("Local", (RuntimeError,), {})("odd"), EnvironmentFailure),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_an_error_that_cannot_travel_arrives_as_the_nearest_one(error: Exception, kind: type) -> None:
    arrived = pickle.loads(pickle.dumps(portable(error)))
    assert type(arrived) is kind
    assert str(error) in str(arrived)


def test_what_cannot_be_pickled_leaves_the_pipe_whole() -> None:
    there, here = os.pipe()
    pipe = Pipe(os.fdopen(there, "rb"), os.fdopen(here, "wb"))
    with pytest.raises(NotSendable, match="pickle"):
        pipe.send("job", lambda: None)
    pipe.send("job", {"a": 1})
    word, content = pipe.receive()
    assert (word, pickle.loads(content)) == ("job", {"a": 1})
    pipe.close()
