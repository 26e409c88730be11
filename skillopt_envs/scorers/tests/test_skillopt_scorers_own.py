"""Functions and programs of the user's own: what they are given, what they may give, and how they can fail."""

import json
import sys
import threading

import pytest
from skillopt_kernel.errors import ConfigError, EnvironmentFailure, RejectedRequest
from skillopt_kernel.records import Score, Task
from skillopt_scorers.functions import PythonScorer
from skillopt_scorers.given import score_of
from skillopt_scorers.programs import CommandScorer
from skillopt_scorers.settings import CommandSettings, PythonSettings
from skillopt_testkit import ScriptedJudge

TASK = Task("t1", "kind", inputs={"question": "Q?"}, reference="r", files={"a.txt": "/data/a.txt"})


@pytest.mark.parametrize(
    ("value", "hard", "soft"),
    [
        (True, 1, 1),
        (False, 0, 0),
        (1, 1, 1),
        (0.5, 0, 0.5),
        (Score(0.25, 0.5), 0.25, 0.5),
        ({"score": 0.5}, 0, 0.5),
        ({"score": 1}, 1, 1),
        ({"hard": True}, 1, 1),
        ({"hard": 0, "soft": 0.5}, 0, 0.5),
        ({"hard": 1, "feedback": None, "named": None}, 1, 1),
    ],
)
def test_what_a_score_may_be(value, hard, soft):
    made = score_of(value, "it")
    assert (made.hard, made.soft) == (hard, soft)
    assert made.hard == 1 or made.feedback or isinstance(value, Score)


def test_feedback_and_named_scores_are_kept():
    made = score_of({"score": 0.5, "feedback": "Half.", "named": {"length": 120, "ok": True}}, "it")
    assert (made.feedback, made.named) == ("Half.", {"length": 120, "ok": 1})


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "it gave as score None, which is no number from 0 to 1"),
        ("1", "as score '1'"),
        (1.2, "as score 1.2"),
        (-1, "as score -1"),
        (float("nan"), "as score nan"),
        (10**400, "as score 1000"),
        ([1], "as score"),
        ({}, "either `hard` or `score`"),
        ({"hard": 1, "score": 1}, "either `hard` or `score`"),
        ({"hard": 1, "soft": 2}, "as soft 2"),
        ({"hard": 1, "sotf": 0.5}, "the key 'sotf', which is none of hard, soft, score"),
        ({"hard": 1, "feedback": 7}, "as feedback a int"),
        ({"hard": 1, "named": [1]}, "as named scores a list"),
        ({"hard": 1, "named": {"x": float("inf")}}, "as named['x'] inf, which is no finite number"),
    ],
)
def test_what_is_no_score_is_a_failure_and_never_a_zero(value, sentence):
    with pytest.raises(EnvironmentFailure) as caught:
        score_of(value, "it")
    assert sentence in str(caught.value)


@pytest.fixture
def python(tmp_path):
    def make(code, function="mine:score", **settings):
        (tmp_path / "mine.py").write_text(code)
        return PythonScorer(PythonSettings(function=function, path=(tmp_path,), **settings))

    return make


def test_a_function_is_given_what_it_names(python):
    code = (
        "def score(task, *, answer, judge=None, weight):\n"
        "    return {'score': weight, 'feedback': f'{task.id} {answer}'}\n"
    )
    made = python(code, arguments={"weight": 0.5}).score("a", "r", TASK)
    assert (made.soft, made.feedback) == (0.5, "t1 a")


def test_a_class_a_method_and_one_that_takes_everything(python):
    code = (
        "class Scorer:\n    def __call__(self, answer, reference):\n        return answer == reference\n"
        "    @staticmethod\n    def method(reference):\n        return reference == 'r'\n"
        "score = Scorer()\n"
        "def everything(**given):\n    return sorted(given) == ['answer', 'judge', 'reference', 'task']\n"
    )
    assert python(code).score("r", "r", TASK).hard == 1
    assert python(code, "mine:Scorer.method").score("a", "r", TASK).hard == 1
    assert python(code, "mine:everything").score("a", "r", TASK).hard == 1


def test_a_function_may_ask_the_judge_and_what_the_call_raises_passes(python):
    code = (
        "from skillopt_kernel.models.requests import Message\n"
        "def score(answer, judge):\n    return judge.chat([Message('user', answer)]).text == 'yes'\n"
    )
    assert python(code).score("right?", None, TASK, ScriptedJudge("yes")).hard == 1

    class Rejects(ScriptedJudge):
        def chat(self, messages, *, schema=None):
            raise RejectedRequest("too odd")

    with pytest.raises(RejectedRequest):
        python(code).score("right?", None, TASK, Rejects())


def test_two_scorers_may_have_modules_of_one_name(tmp_path):
    made = []
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "mine.py").write_text(f"def score(answer):\n    return {number}\n")
        made.append(PythonScorer(PythonSettings(function="mine:score", path=(folder,))))
    assert [scorer.score("a", None, TASK).hard for scorer in made] == [0, 1]
    assert "mine" not in sys.modules


def test_what_a_function_raises_is_a_failure_with_its_place(python):
    scorer = python("def score(answer):\n    return 1 / 0\n")
    with pytest.raises(EnvironmentFailure, match=r"mine:score raised ZeroDivisionError: .*mine\.py:2\)"):
        scorer.score("a", "r", TASK)
    with pytest.raises(EnvironmentFailure, match="raised SystemExit"):
        python("def score(answer):\n    raise SystemExit(3)\n").score("a", "r", TASK)
    with pytest.raises(EnvironmentFailure, match="the function mine:score gave as score None"):
        python("def score(answer):\n    pass\n").score("a", "r", TASK)


@pytest.mark.parametrize(
    ("code", "function", "settings", "sentence"),
    [
        ("", "", {}, "needs `function`"),
        ("", "mine", {}, "'mine' is not an object path like 'package.module:name'"),
        ("", "mine:score", {}, "'mine:score' cannot be imported: AttributeError"),
        ("import nowhere_at_all", "mine:score", {}, "No module named 'nowhere_at_all'"),
        ("def score(:", "mine:score", {}, "SyntaxError"),
        ("score = 3", "mine:score", {}, "mine:score is a int, not a function"),
        ("def score(response): pass", "mine:score", {}, "asks for 'response', which nobody gives"),
        ("def score(answer, /): pass", "mine:score", {}, "asks for 'answer', which nobody gives; by name"),
        ("def score(answer): pass", "mine:score", {"arguments": {"x": 1}}, "has no parameter 'x'"),
        ("def score(answer): pass", "mine:score", {"arguments": {"answer": 1}}, "answer is given by the scorer"),
    ],
)
def test_a_function_that_cannot_be_used_is_told_before_the_run(python, code, function, settings, sentence):
    with pytest.raises(ConfigError) as caught:
        python(code, function, **settings)
    assert sentence in str(caught.value)
    assert "the scorer python" in str(caught.value)


def test_a_module_beside_the_file_that_is_not_found_is_told_how():
    with pytest.raises(ConfigError, match=r"add `path: \[\.\]` to the scorer's settings"):
        PythonScorer(PythonSettings(function="no_such_module_here:score"))


def command(code, **settings):
    return CommandScorer(CommandSettings(command=(sys.executable, "-c", code), **settings))


def test_a_program_gets_json_and_prints_json():
    code = (
        "import json, sys\ngiven = json.load(sys.stdin)\n"
        "json.dump({'score': 0.5, 'feedback': json.dumps(given, sort_keys=True)}, sys.stdout)"
    )
    made = command(code).score("ä\u2028🙂", {"n": 1}, TASK)
    assert made.soft == 0.5
    assert json.loads(made.feedback) == {
        "answer": "ä\u2028🙂",
        "reference": {"n": 1},
        "task": {"id": "t1", "kind": "kind", "inputs": {"question": "Q?"}, "files": {"a.txt": "/data/a.txt"}},
    }


def test_a_program_may_leave_its_input_unread_or_close_it():
    assert command("print('true')").score("x" * 1_000_000, None, TASK).hard == 1
    assert command("import sys; sys.stdin.close(); print('true')").score("x" * 1_000_000, None, TASK).hard == 1


def test_a_mark_of_the_byte_order_before_the_output_is_no_part_of_it():
    assert command("import sys; sys.stdout.buffer.write(b'\\xef\\xbb\\xbf0.5')").score("a", None, TASK).soft == 0.5


def test_what_a_program_has_begun_holds_nothing_up():
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(600)\nprint(0.5)"
    assert command(code, time_limit=60).score("a", None, TASK).soft == 0.5


def test_feedback_is_cut_and_holds_whole_characters_only():
    long = score_of({"hard": 0, "feedback": "x" * 100_000}, "it").feedback
    assert len(long) < 10_000
    assert long.endswith("x...")
    for value in ({"hard": 0, "feedback": "\ud800 ü"}, Score(0, 0, "\ud800 ü")):
        assert score_of(value, "it").feedback.encode("utf-8") == "\ufffd ü".encode()


def test_a_program_runs_in_its_folder_without_credentials(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-1")
    monkeypatch.setenv("OTHER_API_KEY", "sk-2")
    monkeypatch.setenv("PLAIN", "yes")
    code = (
        "import json, os; names = [n for n in ('SOME_API_KEY', 'OTHER_API_KEY', 'PLAIN') if n in os.environ]\n"
        "print(json.dumps({'hard': 1, 'feedback': ' '.join([*names, os.getcwd()])}))"
    )
    made = command(code, folder=tmp_path, variables=("OTHER_API_KEY",)).score("a", None, TASK)
    assert made.feedback == f"OTHER_API_KEY PLAIN {tmp_path.resolve()}"


@pytest.mark.parametrize(
    ("code", "settings", "sentence"),
    [
        ("", {}, "printed nothing; it must print true or false"),
        ("print('yes')", {}, "printed 'yes', which is not one JSON value"),
        ("print('1\\n2')", {}, "not one JSON value"),
        ("print('NaN')", {}, "NaN is not JSON"),
        ("print('[' * 100000)", {}, "not one JSON value"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", {}, "not one JSON value"),
        ("print(2)", {}, "gave as score 2, which is no number from 0 to 1"),
        ("raise ValueError('no such thing')", {}, "ended with exit code 1; its last words: "),
        ("import os; os.abort()", {}, "was ended by signal 6"),
        ("import time; time.sleep(600)", {"time_limit": 0.3}, "took more than 0.3 seconds and was killed"),
        ("while True: print('x' * 1000)", {"output_limit": 10_000}, "printed more than 10000 bytes and was killed"),
        (
            "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
            {"output_limit": 10_000},
            "printed more than 10000 bytes",
        ),
    ],
)
def test_a_program_that_fails_gives_no_score_and_says_why(code, settings, sentence):
    with pytest.raises(EnvironmentFailure) as caught:
        command(code, **settings).score("a", "r", TASK)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_the_last_words_of_a_program_hold_no_credential():
    with pytest.raises(EnvironmentFailure) as caught:
        command("raise SystemExit('Authorization: Bearer abc123def456ghi789')").score("a", "r", TASK)
    assert "abc123def456ghi789" not in str(caught.value)


def test_a_program_that_cannot_be_run_is_told_before_the_run(tmp_path):
    plain = tmp_path / "score.py"
    plain.write_text("print(1)")
    for program, folder, sentence in (
        ("no-such-program-here", None, "looked for in the folders of PATH, is not there"),
        ("C:\\tools\\score.exe", None, "is not there"),
        ("./gone.py", tmp_path, f"looked for at {tmp_path / 'gone.py'}, is not there"),
        (str(tmp_path), None, "is no program that can be run"),
        ("./score.py", tmp_path, "is no program that can be run. Name a program with its path and make it executable"),
        ("a\0b", None, "is not there"),
    ):
        with pytest.raises(ConfigError) as caught:
            CommandScorer(CommandSettings(command=(program,), folder=folder))
        assert sentence in str(caught.value)
    plain.write_text(f"#!{sys.executable}\nprint(1)")
    plain.chmod(0o700)
    assert CommandScorer(CommandSettings(command=("./score.py",), folder=tmp_path)).score("a", "r", TASK).hard == 1
    for none in ((), ("",)):
        with pytest.raises(ConfigError, match="needs `command`"):
            CommandScorer(CommandSettings(command=none))


def test_programs_run_side_by_side():
    scorer = command("import sys, json; print(json.dumps({'hard': 1, 'feedback': json.load(sys.stdin)['answer']}))")
    made = {}
    threads = [
        threading.Thread(target=lambda n=number: made.update({n: scorer.score(str(n), None, TASK).feedback}))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == {number: str(number) for number in range(6)}
