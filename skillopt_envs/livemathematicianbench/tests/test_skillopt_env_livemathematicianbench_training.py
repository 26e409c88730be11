"""Whole runs: from the benchmark's files to a trained skill over HTTP, and what the audit finds in them."""

import json
from pathlib import Path

import pytest
from skillopt_env_livemathematicianbench.questions import STOCK_OPTION
from skillopt_lib_env.data_files import read_items
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer
from skillopt_testkit.wording import proposal, text_of

KEY = "key-of-the-loopback-server-0123456789"
RULE = "Prefer the statement that also says when equality holds."
SPOILER = "Choose the shortest statement."
SPLIT = {"train": range(8), "val": range(8, 12), "test": range(12, 16)}


class World:
    """Both models: the target is right once the skill has the rule, the optimizer proposes it, then what spoils it."""

    def __init__(self, raw):
        self.right = {row.fields["mcq"]["question"]: row.fields["mcq"]["correct_choice"]["text"]
                      for path in sorted(raw.rglob("qa_*")) for row in read_items(path)}  # fmt: skip

    def __call__(self, body):
        asked = "\n".join(text_of(message) for message in body["messages"])
        if body["model"] == "optimizer":
            return proposal(SPOILER if RULE in asked else RULE)
        right = next(text for question, text in self.right.items() if question in asked)
        labels = {line[3:]: line[0] for line in asked.split("## Choices")[1].splitlines() if line[1:3] == ". "}
        wrong = next(label for text, label in labels.items() if text != right)
        return f"Both seem so.\n<answer>({labels[right] if RULE in asked and SPOILER not in asked else wrong})</answer>"


@pytest.fixture
def project(tmp_path, raw):
    """A split of 8, 4 and 4 questions that `skillopt data` wrote."""
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": KEY})
    rows = [
        f"{row.fields['month']}:{row.fields['no']}" for path in sorted(raw.rglob("qa_*")) for row in read_items(path)
    ]
    for name, places in SPLIT.items():
        project.write(f"ids/{name}/items.json", json.dumps([{"id": rows[place]} for place in places]))
    project.run("data", "livemathematicianbench", "--from", raw, "--manifest", "ids").ok()
    return project


def configure(project, server, **model):
    settings = {
        "_base_": "livemathematicianbench",
        "train": {"num_epochs": 1, "batch_size": 4},
        "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
        "model": {"backend": "openai_compatible", "openai_compatible_base_url": server.url, "optimizer": "optimizer",
                  "target": "target", **model},
    }  # fmt: skip
    return project.write("mine.yaml", json.dumps(settings)).name


def test_two_steps_are_trained_over_http(project, raw):
    with ChatServer(World(raw)) as server:
        done = project.run("train", configure(project, server), "--out", "run").ok()
        requests = [each.body for each in server.requests]
    assert done.err.count(f'3 of the 16 questions offer "{STOCK_OPTION}"') == 1
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert [step["action"] for step in history] == ["accept_new_best", "reject"]
    assert RULE in (project.folder / "run/best_skill.md").read_text("utf-8")
    assert "Choosing among statements" in (project.folder / "run/best_skill.md").read_text("utf-8")
    assert summary["test_hard"] == 1.0
    kinds = {
        row["theorem_type"][0]
        for row in project.json("data/livemathematicianbench_split/test/items.json")
        if row["theorem_type"]
    }
    assert kinds
    assert kinds <= set(summary["by_kind"]["test"]), "the first type of a theorem is its task's"
    told = {name: "\n".join(text_of(each) for body in requests if body["model"] == name for each in body["messages"])
            for name in ("target", "optimizer")}  # fmt: skip
    questions = {
        name: read_items(project.folder / f"data/livemathematicianbench_split/{name}/items.json") for name in SPLIT
    }
    for name, items in questions.items():
        for item in items:
            assert item.fields["question"] in told["target"]
            assert item.fields["sketch"] not in told["target"], "the sketch gives the answer away"
            assert (item.fields["question"] in told["optimizer"]) == (name == "train")
    assert any(item.fields["sketch"] in told["optimizer"] for item in questions["train"])
    assert any(item.fields["theorem"] in told["optimizer"] for item in questions["train"])
    outcomes = project.lines("run/outcomes.jsonl")
    assert {line["kind"] for line in outcomes} >= {"Universal", "Inequality or Bound"}


def test_an_agent_program_is_asked_the_same(project, raw, tmp_path):
    program = stand_in(tmp_path / "programs", "codex")
    with ChatServer(World(raw)) as server:
        given = {"OPENAI_API_KEY": KEY, "CODEX_EXEC_BASE_URL": server.url}
        config = configure(project, server, target_backend="codex_exec", codex_exec_path=str(program))
        fewer = ("-o", "env.limit=4", "train.batch_size=2", "evaluation.eval_test=false")
        project.run("train", config, "--out", "run", *fewer, env=given).ok()
        asked = [json.dumps(each.body) for each in server.requests if each.body["model"] == "target"]
    assert [step["action"] for step in project.json("run/history.json")] == ["accept_new_best", "reject"]
    assert len(asked) >= 12
    assert all("## Choices" in text for text in asked)


def test_the_audit_finds_the_stock_option_and_nothing_once_it_is_left_out(tmp_path):
    items = []
    for no in range(1, 41):
        right = STOCK_OPTION if no <= 20 else f"Statement {no:02d} holds as A"
        choices = [{"label": label, "text": f"Statement {no:02d} holds as {label}"} for label in "BCDE"]
        mcq = {"question": f"What of {no}?", "correct_choice": {"label": "A", "text": right}, "choices": choices}
        items.append({"no": no, "month": "202501", "mcq": mcq})
    project = Project(tmp_path)
    project.write("raw/qa_202501_final.json", json.dumps(items))
    env = {"name": "livemathematicianbench", "split_mode": "ratio", "split_ratio": "3:1:0", "data_path": "raw"}
    project.write("mine.yaml", json.dumps({"env": env, "model": {"backend": "openai_compatible"}}))
    found = json.loads(project.run("audit", "mine.yaml", "--json").out)["findings"]
    kinds = {(one["kind"], one["split"]) for one in found}
    assert kinds >= {("option_text", "train"), ("option_text", "selection")}
    assert not {kind for kind, _ in kinds} - {"option_text", "longest_option"}
    assert STOCK_OPTION[:40] in found[0]["message"]
    clean = project.run("audit", "mine.yaml", "--json", "-o", "env.clean_items=true").ok()
    assert json.loads(clean.out)["findings"] == []
    unshuffled = project.run("audit", "mine.yaml", "--json", "-o", "env.clean_items=true", "env.shuffle_choices=false")
    assert "option_label" in [one["kind"] for one in json.loads(unshuffled.out)["findings"]]


def test_the_data_of_the_tests_is_of_the_real_form(raw: Path):
    for path in raw.rglob("qa_*_final.json"):
        for row in read_items(path):
            assert list(row.fields) == ["no", "month", "paper_link", "theorem", "sketch", "theorem_type", "mcq"]
            mcq = row.fields["mcq"]
            assert list(mcq) == ["question", "correct_choice", "choices", "meta", "sketch_usage_meta"]
            assert mcq["correct_choice"]["label"] == "A"
            assert [choice["label"] for choice in mcq["choices"]] == list("BCDE")
