"""Functions in processes of their own: bounded in time, replaced when they end, and never another one than at first."""

import os
import subprocess
import sys
import threading

import pytest
from skillopt_kernel.errors import CallTimeout, ConfigError, EnvironmentFailure, PermanentError
from skillopt_kernel.models.requests import ChatReply, Message
from skillopt_kernel.records import Task
from skillopt_scorers.functions import PythonScorer
from skillopt_scorers.settings import PythonSettings
from skillopt_testkit import ScriptedJudge

TASK = Task("t", inputs={"question": "Q?"}, reference="r")


@pytest.fixture
def python(tmp_path):
    def make(code, **settings):
        (tmp_path / "mine.py").write_text(code)
        return PythonScorer(PythonSettings(function="mine:score", path=(tmp_path,), **settings))

    return make


@pytest.mark.parametrize(
    "body",
    [
        "import time; time.sleep(600)",
        "import re; re.match('(a+)+$', 'a' * 60 + '!')",
    ],
)
def test_a_function_that_hangs_is_killed_and_the_next_answer_is_scored(python, body):
    code = f"def score(answer):\n    if answer == 'hang':\n        {body}\n    return 1\n"
    scorer = python(code, time_limit=4)
    with pytest.raises(EnvironmentFailure) as caught:
        scorer.score("hang", "r", TASK)
    assert str(caught.value) == "the function mine:score took more than 4 seconds and was killed; see `time_limit`"
    assert scorer.score("a", "r", TASK).hard == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("import os; os._exit(3)", "the function mine:score ended with exit code 3"),
        ("import os; os.abort()", "the function mine:score was ended by signal 6"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9"),
    ],
)
def test_a_function_that_ends_its_process_ends_nothing_else(python, body, sentence):
    scorer = python(f"def score(answer):\n    if answer == 'end':\n        {body}\n    return 1\n")
    with pytest.raises(EnvironmentFailure, match=sentence):
        scorer.score("end", "r", TASK)
    assert scorer.score("a", "r", TASK).hard == 1


def test_one_process_serves_one_answer_after_the_other(python):
    code = "count = 0\ndef score():\n    global count; count += 1\n    return {'hard': 1, 'named': {'n': count}}"
    scorer = python(code)
    assert [scorer.score("a", "r", TASK).named["n"] for _ in range(3)] == [1, 2, 3]


def test_a_crowd_is_served_by_several_processes(python):
    code = "import os\ndef score(answer):\n    return {'hard': 1, 'feedback': answer, 'named': {'pid': os.getpid()}}"
    scorer, made = python(code), {}
    threads = [
        threading.Thread(target=lambda n=number: made.update({n: scorer.score(str(n), None, TASK)}))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: score.feedback for number, score in made.items()} == {n: str(n) for n in range(12)}
    assert os.getpid() not in {score.named["pid"] for score in made.values()}


def test_what_a_function_prints_or_reads_is_no_result(python, capfd):
    code = (
        "import os, sys\ndef score(answer):\n    print('seen', flush=True); os.write(1, b'written')\n"
        "    assert sys.stdin.read() == ''\n    return 1\n"
    )
    assert python(code).score("a", "r", TASK).hard == 1
    assert "seen" in capfd.readouterr().err


def test_the_time_that_the_judge_takes_does_not_count(python):
    asked = threading.Event()

    class Slow(ScriptedJudge):
        def chat(self, messages, *, schema=None):
            assert not asked.wait(4.5)
            assert [message.text for message in messages] == ["right?"]
            assert schema == {"type": "object"}
            return ChatReply("yes")

    code = (
        "from skillopt_kernel.models.requests import Message\ndef score(answer, judge):\n"
        "    return judge.chat([Message('user', answer)], schema={'type': 'object'}).text == 'yes'\n"
    )
    assert python(code, time_limit=4).score("right?", None, TASK, Slow()).hard == 1


@pytest.mark.parametrize("error", [CallTimeout("no reply in time"), PermanentError("no key")])
def test_what_the_call_of_the_judge_raises_passes_unchanged(python, error):
    class Fails(ScriptedJudge):
        def chat(self, messages, *, schema=None):
            raise error

    scorer = python("def score(judge):\n    return judge.chat([]).text == 'yes'\n")
    with pytest.raises(type(error)) as caught:
        scorer.score("a", None, TASK, Fails())
    assert caught.value is error
    caught_in = python(
        "def score(judge):\n    try:\n        judge.chat([])\n    except Exception:\n        return 0.5\n"
    )
    assert caught_in.score("a", None, TASK, Fails()).soft == 0.5


def test_what_cannot_be_sent_is_told(python):
    scorer = python("def score(answer, reference):\n    return 1\n")
    with pytest.raises(EnvironmentFailure, match="what the function mine:score is given or asks cannot be sent"):
        scorer.score("a", threading.Lock(), TASK)
    assert scorer.score("a", "r", TASK).hard == 1


def test_an_import_that_ends_the_process_is_told_before_the_run(python):
    with pytest.raises(ConfigError, match=r"a process that imports mine:score ended with exit code 3"):
        python("import os\nos._exit(3)\n")


def test_another_function_than_at_first_is_refused(python, tmp_path):
    scorer = python("import os\ndef score(answer):\n    return 1 if answer != 'end' else os._exit(1)\n")
    assert scorer.score("a", "r", TASK).hard == 1
    (tmp_path / "mine.py").write_text("def score(answer):\n    return 0\n")
    assert scorer.score("a", "r", TASK).hard == 1, "the process that runs has the first one"
    with pytest.raises(EnvironmentFailure, match="ended with exit code 1"):
        scorer.score("end", "r", TASK)
    with pytest.raises(EnvironmentFailure, match="the source of mine:score was changed during the run: put it back"):
        scorer.score("a", "r", TASK)


def test_processes_end_with_the_scorer(python):
    scorer = python("def score():\n    return 1\n")
    assert scorer.score("a", "r", TASK).hard == 1
    (worker,) = scorer._pool._idle
    assert worker.child.poll() is None
    del scorer
    assert worker.child.wait(60) == 0


def test_a_function_outlives_no_run_that_is_killed(tmp_path):
    """Its process holds the pipe of errors open for as long as it lives."""
    (tmp_path / "mine.py").write_text("def score():\n    print('working', flush=True)\n    while True: pass\n")
    code = (
        "from pathlib import Path\nfrom skillopt_kernel.records import Task\n"
        "from skillopt_scorers.functions import PythonScorer\nfrom skillopt_scorers.settings import PythonSettings\n"
        f"settings = PythonSettings(function='mine:score', path=(Path({str(tmp_path)!r}),), time_limit=600)\n"
        "PythonScorer(settings).score('a', 'r', Task('t'))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as run:
        assert run.stderr.readline() == b"working\n"
        run.kill()
        assert run.communicate(timeout=60) == (None, b"")


def test_a_question_of_the_function_may_be_anything_that_a_judge_takes(python):
    code = "def score(judge, task):\n    return judge.chat(task.inputs['messages']).text == 'yes'\n"
    task = Task("t", inputs={"messages": [Message("system", "Grade."), Message("user", "It.")]})
    assert python(code).score("a", None, task, ScriptedJudge("yes")).hard == 1
