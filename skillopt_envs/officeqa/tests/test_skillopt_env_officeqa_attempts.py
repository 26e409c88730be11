"""Attempts: a bounded loop with tools, what the target is shown and not shown, how an attempt ends."""

import json
import logging
import os

import pytest
from officeqa_world import CORPUS, TASK, ScriptedModel, call, calls, environment
from skillopt_env_officeqa.issues import pages_by_file
from skillopt_env_officeqa.settings import OfficeQASettings
from skillopt_kernel.errors import ConfigError, DataError, EnvironmentFailure
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.records import Task, ToolCall
from skillopt_testkit.scripted import ScriptedTarget

NAME = "treasury_bulletin_1942_07.txt"
PAGES = {"source_files": [NAME], "source_docs": TASK.reference["source_docs"]}
TOLD = Task(TASK.id, TASK.kind, {**TASK.inputs, **PAGES}, TASK.reference)


def attempted(*replies, task=TASK, skill="", **settings):
    model, made = ScriptedModel(*replies), environment(**settings)
    return model, made.attempt(task.hidden(), skill, model.target()), made


def shown(request):
    return "\n".join(message.text for message in request.messages)


def test_the_target_looks_is_answered_and_answers():
    search, read = call("search", query="Customs June 1942"), call("read", 2, path=NAME, start=1, limit=20)
    model, attempt, made = attempted(calls(search, text="Let me look."), calls(read), "Found.\n<answer>636.6</answer>")
    assert (attempt.output, attempt.ended) == ("636.6", None)
    assert [turn.role for turn in attempt.trajectory] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert [call.name for turn in attempt.trajectory for call in turn.tool_calls] == ["search", "read"]
    results = [turn for turn in attempt.trajectory if turn.role == "tool"]
    assert [turn.tool_call_id for turn in results] == ["c1", "c2"]
    assert all("| Customs | 636.6 |" in turn.content for turn in results)
    assert [tool.name for tool in model.requests[0].tools] == ["search", "glob", "read", "grep"]
    assert {request.tool_choice for request in model.requests} == {"auto"}
    assert model.requests[0].max_tokens == 16384
    score = made.score(TASK, attempt, None)
    assert (score.hard, score.soft, score.feedback) == (1.0, 1.0, "Right.")
    assert score.named["reference_em"] == 1.0
    assert made.evidence(TASK, attempt)["Of these, looked into"] == f"- {NAME}"


def test_several_calls_of_a_reply_are_answered_in_order():
    both = calls(call("glob", 1, pattern="*1942*"), call("nonsense", 2), call("glob", 3, pattern="*1950*"))
    model, _, _ = attempted(both, "<answer>1</answer>")
    answers = [message for message in model.requests[1].messages if message.role == "tool"]
    assert [message.tool_call_id for message in answers] == ["c1", "c2", "c3"]
    assert [message.text[:6] for message in answers] == ["treasu", "[error", "treasu"]


def test_the_last_turn_can_look_up_nothing_and_must_answer():
    looks = [calls(call("glob", number, pattern="*")) for number in range(1, 4)]
    model, attempt, _ = attempted(*looks, "<answer>5</answer>", max_tool_turns=3)
    assert len(model.requests) == 3
    assert [request.tool_choice for request in model.requests] == ["auto", "auto", "none"]
    last = model.requests[2]
    assert last.tools, "endpoints want the tools of earlier calls named"
    assert last.messages[-1].role == "user"
    assert "last turn" in last.messages[-1].text
    assert (attempt.output, attempt.ended) == ("", "max_turns"), "a target that calls even then is out of turns"
    model, attempt, _ = attempted(looks[0], looks[1], "<answer>5</answer>", max_tool_turns=3)
    assert (attempt.output, attempt.ended) == ("5", None)
    model, attempt, _ = attempted("<answer>5</answer>", max_tool_turns=1)
    assert model.requests[0].tool_choice == "none"


def test_a_reply_that_neither_looks_nor_answers_is_reminded_once():
    model, attempt, made = attempted("I think it is 5.", "I still think it is 5.", "never asked")
    assert len(model.requests) == 2
    assert "neither a tool call nor an answer" in model.requests[1].messages[-1].text
    assert attempt.output == "I still think it is 5."
    assert made.score(TASK, attempt, None).named["reference_em"] == 0.0, "earlier trainers wanted tags"
    model, attempt, _ = attempted("Hm.", calls(call("glob", pattern="*")), "Hm.", "<answer>7</answer>")
    assert (len(model.requests), attempt.output) == (4, "7"), "once it looks again, it may be reminded again"


def test_an_answer_beside_tool_calls_counts():
    _, attempt, _ = attempted(calls(call("glob", pattern="*"), text="<answer>5</answer>"))
    assert attempt.output == "5"


@pytest.mark.parametrize(
    ("reply", "ended", "words"),
    [
        (ChatReply("", finish="filtered"), "refused", "no answer"),
        (ChatReply("", finish="empty"), "empty_answer", "no answer"),
        (ChatReply("<answer>6", finish="length"), None, "cut off at the token limit"),
    ],
)
def test_other_ends(reply, ended, words):
    _, attempt, made = attempted(reply)
    assert attempt.ended == ended
    score = made.score(TASK, attempt, None)
    assert score.hard == 0.0
    assert words in score.feedback


def test_wrong_arguments_are_answered_and_not_fatal():
    bad = [ToolCall("a", "read", "{not json"), ToolCall("b", "read", '{"path": "/etc/passwd"}'), ToolCall("c", "", "")]
    model, attempt, _ = attempted(calls(*bad), "<answer>636.6</answer>")
    results = [message.text for message in model.requests[1].messages if message.role == "tool"]
    assert all(text.startswith("[error: ") for text in results)
    assert attempt.output == "636.6"


def test_the_target_is_not_told_where_the_answer_stands():
    made, model = environment(), ScriptedModel("<answer>1</answer>")
    made.attempt(TASK.hidden(), "", model.target())
    assert "1942_07" not in shown(model.requests[0])
    assert "fraser" not in shown(model.requests[0])
    assert made.notes() == ()


def test_gold_sources_are_shown_when_asked_for_and_the_summary_is_told():
    look = calls(call("glob", 1, pattern="*"), call("search", 2, query="Customs"), call("read", 3, path="1950_02.txt"))
    model, _, made = attempted(look, "<answer>1</answer>", task=TOLD, gold_sources=True)
    prompt = model.requests[0].messages[1].text
    assert f"### {NAME}, page 3" in prompt
    assert "| Customs | 636.6 | 967.8 |" in prompt
    assert "| Treasury bonds |" not in prompt, "another page"
    assert f"- {NAME}" in prompt
    assert TASK.reference["source_docs"][0] in prompt
    listed, found, read = (message.text for message in model.requests[1].messages if message.role == "tool")
    assert listed == NAME, "the tools are confined to the documents that were told"
    assert {line.split(",")[0] for line in found.splitlines() if ", lines" in line} == {NAME}
    assert read.startswith("[error")
    assert "env.gold_sources is true" in made.notes()[0]


def test_without_tools_the_pages_are_all_there_is():
    model, attempt, _ = attempted("<answer>636.6</answer>", task=TOLD, gold_sources=True, use_local_tools=False)
    assert len(model.requests) == 1
    assert model.requests[0].tools == ()
    assert "636.6" in model.requests[0].messages[1].text
    assert attempt.output == "636.6"


def test_a_parsed_file_that_is_damaged_is_no_fault_of_the_target(tmp_path):
    (tmp_path / "transformed").mkdir()
    (tmp_path / "jsons").mkdir()
    (tmp_path / "transformed" / NAME).write_text("x")
    (tmp_path / "jsons" / NAME.replace(".txt", ".json")).write_text("{broken")
    made = environment(data_dirs=(tmp_path,), gold_sources=True)
    with pytest.raises(EnvironmentFailure, match=r"parsed document .* cannot be read"):
        made.attempt(TOLD.hidden(), "", ScriptedModel("x").target())


def test_an_agent_program_gets_the_documents_as_files():
    target = ScriptedTarget("Read.\n<answer>636.6</answer>", kind="agent")
    attempt = environment().attempt(TASK.hidden(), "# Skill", target)
    (job,) = target.jobs
    assert sorted(job.files)[0] == "corpus/treasury_bulletin_1939_01.txt"
    assert len(job.files) == 6
    assert all(path.is_relative_to(CORPUS) for path in job.files.values())
    assert job.edits is False
    assert "corpus/" in job.prompt
    assert "1942_07" not in job.prompt
    assert attempt.output == "636.6"
    told = ScriptedTarget("<answer>636.6</answer>", kind="agent")
    environment(gold_sources=True).attempt(TOLD.hidden(), "", told)
    assert list(told.jobs[0].files) == [f"corpus/{NAME}"]
    pages = ScriptedTarget("<answer>636.6</answer>", kind="agent")
    environment(gold_sources=True, use_local_tools=False).attempt(TOLD.hidden(), "", pages)
    assert pages.jobs[0].files == {}
    assert "636.6" in pages.jobs[0].prompt


def test_neither_tools_nor_pages_is_refused_before_the_run(split):
    with pytest.raises(ConfigError, match=r"env\.use_local_tools is false.*env\.gold_sources to true"):
        environment(split_dir=split, use_local_tools=False).splits()


@pytest.mark.parametrize("mode", ["azure_search", "azure", "bing"])
def test_modes_that_there_are_not_are_refused(mode):
    with pytest.raises(ValueError, match=r"offline"):
        OfficeQASettings(search_mode=mode)


def test_documents_that_are_not_named_are_an_error(split, monkeypatch):
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    with pytest.raises(DataError, match=r"env\.data_dirs.*OFFICEQA_DOCS_DIR"):
        environment(split_dir=split, data_dirs=()).splits()
    monkeypatch.setenv("OFFICEQA_DOCS_DIR", str(CORPUS))
    assert len(environment(split_dir=split, data_dirs=()).splits().train) == 8


def test_another_corpus_makes_other_tasks(split, tmp_path):
    first = environment(split_dir=split).splits().train[0]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    other = environment(split_dir=split, data_dirs=(tmp_path / "docs",)).splits().train[0]
    assert first.content_hash() != other.content_hash()
    assert first.id == other.id
    (tmp_path / "docs" / "a.txt").write_text("y")
    changed = environment(split_dir=split, data_dirs=(tmp_path / "docs",)).splits().train[0]
    assert changed.content_hash() != other.content_hash(), "the content tells, not the size"


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_document_that_changed_since_the_run_began_is_no_fault_of_the_target(tmp_path, how):
    document = tmp_path / "a.txt"
    document.write_text("Customs 1")
    made = environment(data_dirs=(tmp_path,))
    read = calls(call("read", path="a.txt"))
    assert made.attempt(TASK.hidden(), "", ScriptedModel(read, "<answer>1</answer>").target()).output == "1"
    if how == "gone":
        document.unlink()
    else:
        document.write_text("Customs 2")
        os.utime(document, ns=(1, 1))
    told = "has changed since the run began; run the same command again" if how == "changed" else "cannot be read"
    for target in (ScriptedModel(read).target(), ScriptedTarget("<answer>1</answer>", kind="agent")):
        with pytest.raises(EnvironmentFailure, match=told):
            made.attempt(TASK.hidden(), "", target)


def test_the_older_name_of_the_folders_counts_and_is_told(split, tmp_path, caplog):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    with caplog.at_level(logging.WARNING):
        made = environment(split_dir=split, docs_dirs=(tmp_path / "docs",), logger=logging.getLogger("told"))
        assert made.splits().train
    assert "env.docs_dirs is the older name of env.data_dirs" in caplog.text
    target = ScriptedTarget("<answer>1</answer>", kind="agent")
    made.attempt(TASK.hidden(), "", target)
    assert list(target.jobs[0].files) == ["corpus/a.txt"]


def test_what_of_the_corpus_is_left_out_is_told(split, tmp_path, caplog):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    (tmp_path / "docs" / "b.txt").write_bytes(b"\0")
    with caplog.at_level(logging.WARNING):
        environment(split_dir=split, data_dirs=(tmp_path / "docs",), logger=logging.getLogger("told")).splits()
    assert "1 files of the corpus are binary and are left out: b.txt" in caplog.text


def test_an_index_that_takes_long_is_told_of_once_and_made_after_the_data_was_found(
    split, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr("skillopt_env_officeqa.environment.LARGE", 100)
    where = {"index_dir": tmp_path / "index", "logger": logging.getLogger("told")}
    with caplog.at_level(logging.WARNING):
        with pytest.raises(DataError, match="nowhere"):
            environment(split_dir=tmp_path / "nowhere", **where).splits()
        assert not (tmp_path / "index").exists()
        assert caplog.text == ""
        environment(split_dir=split, **where).splits()
        assert "the search index of 6 documents" in caplog.text
        assert str(tmp_path / "index") in caplog.text
        caplog.clear()
        environment(split_dir=split, **where).splits()
        assert caplog.text == ""


def test_pages_belong_to_the_file_of_their_issue():
    address = "https://fraser.stlouisfed.org/title/treasury-bulletin-407/{}-7028?page={}"
    files = ["treasury_bulletin_1942_07.txt", "treasury_bulletin_2001_12.txt"]
    addresses = [address.format("july-1942", 4), address.format("december-2001", 17) + "&deep=true",
                 address.format("july-1942", 5), address.format("july-1942", 4)]  # fmt: skip
    assert pages_by_file(files, addresses) == [(files[0], 4), (files[1], 17), (files[0], 5)]
    assert pages_by_file(["a.txt"], ["https://x.org/?pagenum=3", "https://x.org/?page_id=4", "https://x.org/"]) == [
        ("a.txt", 3), ("a.txt", 4),
    ]  # fmt: skip
    assert pages_by_file(["a.txt", "b.txt"], ["https://x.org/?page=1", "https://x.org/?page=2"]) == [
        ("a.txt", 1), ("b.txt", 2),
    ]  # fmt: skip
    assert pages_by_file([], ["https://x.org/?page=1"]) == []


def test_ids_alone_are_refused_with_what_to_do(tmp_path):
    for name in ("train", "val", "test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "items.json").write_text(json.dumps([{"id": f"{name}1", "uid": f"{name}1"}]))
    with pytest.raises(DataError, match=r"ids only .*skillopt data officeqa --from"):
        environment(split_dir=tmp_path).splits()
