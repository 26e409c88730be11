"""Whole runs: two steps trained over HTTP on the small corpus, offline, with gold sources, and by an agent program."""

import json
import re
from datetime import datetime

from officeqa_world import CORPUS, RULE, World
from skillopt_lib_env.data_files import read_items
from skillopt_testkit.programs import stand_in
from skillopt_testkit.servers import ChatServer, Reply
from skillopt_testkit.wording import text_of


def asked_by(server, name):
    return [each.body for each in server.requests if each.body["model"] == name]


def test_two_steps_are_trained_over_http(project, configure):
    with ChatServer(World()) as server:
        fewer = ("-o", "env.limit=4", "train.batch_size=2")
        project.run("train", configure(server, index_dir="index"), "--out", "run", *fewer).ok()
        target, optimizer = asked_by(server, "target"), asked_by(server, "optimizer")
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert [step["action"] for step in history] == ["accept_new_best", "reject"]
    best = (project.folder / "run/best_skill.md").read_text("utf-8")
    assert RULE in best
    assert "Answering questions about Treasury Bulletins" in best
    assert summary["test_hard"] == 1.0, "the figures come from what the tools answered"
    assert summary["baseline_test_hard"] == 0.0
    assert set(summary["by_kind"]["test"]) >= {"easy", "hard"}
    assert not any("gold_sources" in note for note in summary["notes"])
    # What the target was sent of itself names no source; the optimizer sees those of training tasks only.
    first = [
        text_of(message) for body in target for message in body["messages"] if message["role"] in ("system", "user")
    ]
    assert not any("treasury_bulletin_1" in text or "fraser" in text for text in first)
    told = json.dumps(optimizer)
    parts = {name: read_items(project.folder / f"split/{name}/items.json") for name in ("train", "val", "test")}
    for name, items in parts.items():
        for item in items[:4]:
            assert (json.dumps(item.fields["question"])[1:-1] in told.replace('\\\\"', '\\"')) == (name == "train")
    assert "Where it stands" in told
    assert "Of these, looked into" in told
    # Trajectories are whole: each call with its result, in order.
    conversations = [
        json.loads(path.read_text("utf-8")) for path in (project.folder / "run").rglob("conversation.json")
    ]
    looked = [each for each in conversations if any(turn.get("tool_calls") for turn in each)]
    assert looked
    for turns in looked:
        called = [call["id"] for turn in turns for call in turn.get("tool_calls", ())]
        assert [turn["tool_call_id"] for turn in turns if turn["role"] == "tool"] == called
    assert len(list((project.folder / "index").iterdir())) == 1


def test_gold_sources_are_named_in_the_summary(project, configure):
    fewer = ("-o", "env.limit=4", "train.batch_size=4", "evaluation.eval_test=false")
    with ChatServer(World()) as server:
        project.run("train", configure(server, gold_sources=True), "--out", "run", *fewer).ok()
        target = asked_by(server, "target")
    notes = project.json("run/summary.json")["notes"]
    assert sum("env.gold_sources is true" in note for note in notes) == 1
    assert all("## Pages that hold the answer" in json.dumps(body) for body in target)


def test_an_agent_program_is_given_the_corpus(project, configure, tmp_path):
    """It finds the figure with a command of its own, and answers with it once the skill says so."""
    program = stand_in(tmp_path / "programs", "codex")
    results = []

    def script(body):
        if body["model"] == "optimizer":
            return World()(body)
        asked = "\n".join(text_of(message) for message in body["messages"])
        printed = [text_of(message) for message in body["messages"] if message["role"] == "tool"]
        results.extend(printed)
        if not printed:
            row = re.search(r'amount of "(.+?)"', asked)[1]
            issue = datetime.strptime(re.search(r"Bulletin of (\w+ \d+)", asked)[1], "%B %Y")
            linked = "find corpus -type f -links +1 -perm 444 | wc -l"
            command = f"{linked}; grep -h '| {row} |' corpus/treasury_bulletin_{issue:%Y_%m}.txt"
            function = {"name": "exec_command", "arguments": json.dumps({"cmd": command})}
            return Reply(tool_calls=({"id": "call-1", "type": "function", "function": function},))
        figure = re.search(r"^\| [^|]+ \| ([\d.,]+) \|", printed[-1], re.MULTILINE)[1]
        return f"<answer>{figure if RULE in asked else 0}</answer>"

    with ChatServer(script) as server:
        given = {"OPENAI_API_KEY": "key-of-the-loopback-server-0123456789", "CODEX_EXEC_BASE_URL": server.url}
        config = configure(server, {"target_backend": "codex_exec", "codex_exec_path": str(program)})
        fewer = ("-o", "env.limit=3", "train.batch_size=3", "evaluation.eval_test=false")
        (scratch := tmp_path / "scratch").mkdir()
        project.run("train", config, "--out", "run", *fewer, env=given | {"TMPDIR": str(scratch)}).ok()
    assert list(scratch.iterdir()) == [], "neither workspaces nor what they shared is left"
    assert [step["action"] for step in project.json("run/history.json")] == ["accept_new_best"]
    assert project.json("run/summary.json")["best_selection_hard"] == 1.0
    assert all("6" in text.split() for text in results), "the six documents, each copied once for all attempts"


def test_the_older_name_of_the_folders_loads_from_a_file_without_sections(project, split):
    flat = {"env": "officeqa", "split_dir": "split", "split_mode": "split_dir", "model_backend": "simulated"}

    def named(folders):
        return project.write("flat.yaml", json.dumps({**flat, "docs_dirs": folders})).name

    shown = project.run("config", "show", named([str(CORPUS)]), "--origins").ok().out
    assert "docs_dirs" in shown
    project.run("train", named(str(CORPUS)), "--out", "run").refused("docs_dirs: expected a list")
    project.run("train", named(["nowhere"]), "--out", "run").refused("env.docs_dirs: there is no folder", "nowhere")


def test_a_web_search_is_refused_for_agent_programs_before_the_run(project, configure, tmp_path):
    program = stand_in(tmp_path / "programs", "codex")
    with ChatServer(World()) as server:
        model = {"target_backend": "codex_exec", "codex_exec_path": str(program)}
        config = configure(server, model, search_mode="custom_search", search_api_url=server.url)
        given = {"OPENAI_API_KEY": "key-of-the-loopback-server-0123456789", "CODEX_EXEC_BASE_URL": server.url,
                 "OFFICEQA_CUSTOM_SEARCH_AUTH": "search-token-0123456789"}  # fmt: skip
        project.run("train", config, "--out", "run", env=given).refused("codex_exec", "chat")
        assert server.requests == []
