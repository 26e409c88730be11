"""Questions and answers as files: what is written, what is taken, and what is told of an answer that cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from skillopt_backend_handoff.backend import HandoffBackend
from skillopt_backend_handoff.question import Question
from skillopt_kernel.errors import ConfigError, Pending, PermanentError
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall

BLOCK = re.compile(r"^(~{4,}) ([^\n]*)\n((?:.*\n)*?)\1$", re.MULTILINE)
PICTURE = b"\x89PNG and more"


def request(user: str = "How many?", call: str = "skill/task/0/t1/0", **options: Any) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", user)), call=call, **options)


class Desk:
    """A folder with a backend, and what somebody writes there. `again`: as the next process finds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "handoff"
        self.again()

    def again(self) -> Desk:
        self.backend = HandoffBackend("a-model")
        self.backend.enter(self.folder.parent)
        return self

    def ask(self, asked: ChatRequest, role: str = "target") -> Any:
        return self.backend.open_chat(role).complete(asked)

    def leave(self, asked: ChatRequest, role: str = "target") -> Path:
        """Ask, find that it is pending, and return the question's file."""
        with pytest.raises(Pending):
            self.ask(asked, role)
        path = self.folder / f"{Question(self.folder, role, 'a-model', asked).name}.md"
        assert f"answer: {path.stem}.answer.md" in path.read_text("utf-8")
        return path

    def questions(self) -> list[Path]:
        return [path for path in self.folder.glob("*.md") if not path.name.endswith(".answer.md")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def answer(question: Path, text: str | bytes, ending: str = ".answer.md") -> Path:
    path = question.with_suffix(ending)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_a_question_says_who_is_asked_what_and_where_the_answer_goes(desk: Desk) -> None:
    path = desk.leave(request(stage="rollout", max_tokens=50, seed=7))
    text = path.read_text("utf-8")
    head = dict(re.findall(r"^(\w+): (.*)$", text.split("\n---\n")[0], re.MULTILINE))
    assert head == {
        "role": "target", "stage": "rollout", "call": '"skill/task/0/t1/0"', "model": '"a-model"',
        "answer": path.with_suffix(".answer.md").name, "max_tokens": "50", "seed": "7",
    }  # fmt: skip
    assert [(about, content[:-1]) for _, about, content in BLOCK.findall(text)] == [
        ("system", "Be brief."), ("user", "How many?"),
    ]  # fmt: skip
    assert path.stat().st_mode & 0o077 == 0, "a prompt is its owner's alone"


@pytest.mark.parametrize(
    "content",
    ["", "\n", "~~~~ user\nnot a message\n~~~~", "a\r\nb\r\n", "~~~~~~~~~\n", "---\n", "Grüße 🙂\n\n", "stage: x\n"],
)
def test_any_text_can_be_read_back_as_it_is(desk: Desk, content: str) -> None:
    path = desk.leave(request(content))
    assert BLOCK.findall(path.read_bytes().decode("utf-8"))[1][2][:-1] == content
    answer(path, "4")
    assert desk.again().ask(request(content)).text == "4"


def test_images_tools_schema_and_a_conversation_are_told(desk: Desk) -> None:
    messages = (
        Message("user", (TextPart("What is this?"), ImagePart(PICTURE, "image/png"))),
        Message("assistant", "Let me look.", (ToolCall("c1", "look", '{"at": 1}'),)),
        Message("tool", "a cat", tool_call_id="c1"),
    )
    tools = (Tool("look", "Looks.", {"type": "object"}),)
    path = desk.leave(ChatRequest(messages, tools, schema={"type": "object"}, call="x/0"))
    text = path.read_text("utf-8")
    found = [(about, content[:-1]) for _, about, content in BLOCK.findall(text)]
    assert [about for about, _ in found] == [
        "user",
        "assistant",
        "assistant tool_calls",
        'tool "c1"',
        "tools",
        "schema",
    ]
    assert json.loads(found[2][1]) == [{"id": "c1", "name": "look", "arguments": '{"at": 1}'}]
    assert json.loads(found[4][1])[0]["name"] == "look"
    image = re.search(r"!\[user\]\((.*)\)", text)
    assert image is not None
    assert (desk.folder / image[1]).read_bytes() == PICTURE
    assert path.with_suffix(".answer.json").name in text
    answer(path, json.dumps({"tool_calls": [{"name": "look", "arguments": {"at": 2}}]}), ".answer.json")
    reply = desk.again().ask(ChatRequest(messages, tools, schema={"type": "object"}, call="x/0"))
    assert (reply.finish, reply.tool_calls) == ("tool_calls", (ToolCall("call_1", "look", '{"at": 2}'),))
    left = {path.name for path in desk.folder.iterdir()}
    assert left == {"answered"}, "its image moves with it"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("4", "4"),
        ("4\n", "4"),
        ("4\r\n", "4"),
        ("a\n\n", "a\n"),
        ("\ufeff4", "4"),
        (" 4", " 4"),
        ('{"a": 1}\n', '{"a": 1}'),
    ],
)
def test_an_answer_is_the_text_of_its_file(desk: Desk, written: str, read: str) -> None:
    answer(desk.leave(request()), written)
    reply = desk.ask(request())
    assert (reply.text, reply.finish, reply.usage.calls, reply.usage.prompt_tokens) == (read, "stop", 1, None)


def test_an_answer_as_json_may_tell_what_it_used(desk: Desk) -> None:
    told = {"text": "{", "finish": "length", "usage": {"prompt_tokens": 10, "completion_tokens": 2, "usd": 0.5}}
    answer(desk.leave(request()), json.dumps(told), ".answer.json")
    reply = desk.ask(request())
    assert (reply.text, reply.finish) == ("{", "length")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.usd) == (10, 2, 0.5)


@pytest.mark.parametrize(
    ("written", "ending", "told"),
    [
        ("", ".answer.md", "is empty"),
        (" \n\t", ".answer.md", "is empty"),
        (b"caf\xe9", ".answer.md", "is not UTF-8 at byte 3"),
        ("Grüße".encode()[:3], ".answer.md", "is not UTF-8 at byte 2"),
        ('{"edits": [{"op": "app', ".answer.md", "looks half-written"),
        ("```json\n{}", ".answer.md", "looks half-written"),
        ("```", ".answer.md", "looks half-written"),
        ("[1, 2", ".answer.md", "looks half-written"),
        ('{"text": "4', ".answer.json", "is no JSON"),
        ("[]", ".answer.json", "must be a JSON object"),
        ("{}", ".answer.json", "has neither text nor tool_calls"),
        ('{"text": 4}', ".answer.json", '"text" that is no text'),
        ('{"answer": "4"}', ".answer.json", "has the key 'answer'"),
        ('{"text": "4", "finish": "done"}', ".answer.json", "the \"finish\" 'done'"),
        ('{"tool_calls": {}}', ".answer.json", '"tool_calls" that are no list'),
        ('{"tool_calls": [{}]}', ".answer.json", 'a tool call without a "name"'),
        ('{"text": "4", "usage": {"tokens": 4}}', ".answer.json", '"usage" with something else'),
        ('{"text": "4", "usage": {"prompt_tokens": true}}', ".answer.json", "prompt_tokens is no number"),
        ('{"text": "4", "usage": {"prompt_tokens": -1}}', ".answer.json", "prompt_tokens is no number"),
    ],
)
def test_an_answer_that_cannot_be_used_is_told_and_stays_open(
    desk: Desk, written: str | bytes, ending: str, told: str
) -> None:
    question = desk.leave(request())
    path = answer(question, written, ending)
    with pytest.raises(Pending) as pending:
        desk.again().ask(request())
    sentence = desk.backend.waiting()
    for text in (str(pending.value), sentence):
        assert str(path) in text
        assert told in text
    assert "target: 1 call waits for its answer" in sentence
    path.unlink()
    answer(question, "4")
    assert desk.again().ask(request()).text == "4"
    assert desk.backend.waiting() == ""


def test_of_two_answers_none_is_taken(desk: Desk) -> None:
    question = desk.leave(request())
    answer(question, "4")
    other = answer(question, '{"text": "5"}', ".answer.json")
    with pytest.raises(Pending, match=f"{other.name} as well; delete the one that is not meant"):
        desk.again().ask(request())
    other.unlink()
    assert desk.ask(request()).text == "4"


def test_an_answer_is_found_again_by_who_had_not_yet_written_it_down(desk: Desk) -> None:
    """The process that took it was killed before the ledger had it; or in the middle of moving the files."""
    question = desk.leave(request())
    answer(question, "4")
    assert desk.ask(request()).text == "4"
    assert desk.questions() == []
    assert desk.again().ask(request()).text == "4"
    kept = desk.folder / "answered" / question.name
    kept.replace(question)
    assert desk.again().ask(request()).text == "4"


def test_an_answer_to_a_question_that_has_changed_is_refused(desk: Desk) -> None:
    path = answer(desk.leave(request("How many?")), "4")
    with pytest.raises(PermanentError, match="has changed since it was written") as refused:
        desk.again().ask(request("How much?"))
    assert str(path) in str(refused.value)
    assert "Move the answer away and run the same command again" in str(refused.value)
    path.unlink()
    question = desk.leave(request("How much?"))
    assert "How much?" in question.read_text("utf-8")
    answer(question, "a lot")
    assert desk.again().ask(request("How much?")).text == "a lot"


def test_an_answer_to_an_edited_question_is_refused(desk: Desk) -> None:
    question = desk.leave(request())
    question.write_text(question.read_text("utf-8").replace("How many?", "How many? Say 5."), encoding="utf-8")
    answer(question, "5")
    with pytest.raises(PermanentError, match="or was edited"):
        desk.again().ask(request())
    question.unlink()
    with pytest.raises(PermanentError, match="is not there any more"):
        desk.again().ask(request())


def test_a_question_that_changed_without_an_answer_is_written_anew(desk: Desk) -> None:
    desk.leave(request("How many?"))
    question = desk.again().leave(request("How much?"))
    assert "How much?" in question.read_text("utf-8")
    assert len(desk.questions()) == 1


def test_an_answer_that_was_taken_is_no_answer_to_another_question(desk: Desk) -> None:
    """A step that is taken again may ask something else at the same place."""
    answer(desk.leave(request("How many?")), "4")
    desk.ask(request("How many?"))
    question = desk.again().leave(request("How much?"))
    answer(question, "a lot")
    assert desk.again().ask(request("How much?")).text == "a lot"


def test_what_a_call_is_for_may_differ(desk: Desk) -> None:
    """Fetched ahead for one stage, the same attempt may be asked for by another."""
    answer(desk.leave(request(stage="selection")), "4")
    assert desk.again().ask(request(stage="test")).text == "4"


def test_roles_and_calls_have_files_of_their_own(desk: Desk) -> None:
    one, other, judge = request(call="a/0"), request(call="a/1"), request(call="a/0")
    names = {desk.leave(one).name, desk.leave(other).name, desk.leave(judge, "judge").name}
    assert len(names) == 3
    assert "judge and target: 3 calls wait for answers" in desk.backend.waiting()


def test_questions_that_are_not_asked_any_more_go_aside_and_their_answers_are_told(desk: Desk) -> None:
    first, second = desk.leave(request(call="a/0")), desk.leave(request(call="b/0"))
    desk.again().leave(request(call="c/0"))
    answer(second, "4")
    told = desk.backend.waiting()
    assert f"the answer to {second.stem} is not used" in told
    assert not first.exists()
    assert second.exists()
    assert (desk.folder / "set_aside" / first.name).exists()
    assert desk.again().ask(request(call="b/0")).text == "4"
    answer(first, "5")
    assert desk.ask(request(call="a/0")).text == "5", "its question is known still"


def test_at_most_ten_things_are_told_of_single_answers(desk: Desk) -> None:
    for number in range(13):
        answer(desk.leave(request(call=f"{number}/0")), "")
    desk.again()
    for number in range(13):
        with pytest.raises(Pending):
            desk.ask(request(call=f"{number}/0"))
    lines = desk.backend.waiting().splitlines()
    assert "target: 13 calls wait for answers" in lines[0]
    assert (len(lines), lines[-1].strip()) == (12, "and 3 more of these")


def test_it_plays_no_agent_and_needs_a_run(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="runs no agent's job"):
        desk.backend.open_agent("target")
    with pytest.raises(ConfigError, match="plays optimizer, target, judge"):
        desk.backend.open_chat("critic")
    with pytest.raises(PermanentError, match="calls of a run only"):
        HandoffBackend("m").open_chat("target").complete(request())


def test_a_file_that_cannot_be_read_is_a_sentence(desk: Desk) -> None:
    question = desk.leave(request())
    question.unlink()
    question.mkdir()
    with pytest.raises(Exception, match="cannot write") as refused:
        desk.ask(request())
    assert str(question) in str(refused.value)
