"""From rows of the public data set's shape to a skill that is trained two steps over HTTP."""

import json
from pathlib import Path

from skillopt_lib_env.data_files import read_items
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer
from skillopt_testkit.wording import proposal

ROWS = Path(__file__).parent / "data" / "rows"
RULE = "Give the answer as the document spells it, and nothing else."
SPOILER = "Answer in a full sentence."


def model(rows):
    """Both models: the target is right once the skill has the rule, the optimizer proposes it, then what spoils it."""
    answers = {row.fields["question"]: row.fields["answers"][0] for row in rows}

    def reply(body):
        asked = "\n".join(message["content"] for message in body["messages"])
        if body["model"] == "optimizer":
            return proposal(SPOILER if RULE in asked else RULE)
        answer = next(answer for question, answer in answers.items() if question in asked)
        right = RULE in asked and SPOILER not in asked
        return f"<answer>{answer}</answer>" if right else f"<answer>It could be {answer}, I think.</answer>"

    return reply


def test_rows_of_the_data_set_train_a_skill_in_two_steps(tmp_path):
    files = [ROWS / "train.jsonl", ROWS / "validation.jsonl"]
    rows = [row for file in files for row in read_items(file)]
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": "key-of-the-loopback-server"})
    for name, part in (("train", rows[:8]), ("val", rows[8:12]), ("test", rows[12:])):
        project.write(f"ids/{name}/items.json", json.dumps([{"id": row.fields["key"]} for row in part]))
    project.run("data", "searchqa", "--manifest", "ids", *(word for file in files for word in ("--from", file))).ok()
    with ChatServer(model(rows)) as server:
        settings = {
            "_base_": "searchqa",
            "train": {"num_epochs": 1, "batch_size": 4, "train_size": 8},
            "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
            "model": {"backend": "openai_compatible", "openai_compatible_base_url": server.url,
                      "optimizer": "optimizer", "target": "target"},
        }  # fmt: skip
        project.write("mine.yaml", json.dumps(settings))
        project.run("train", "mine.yaml", "--out", "run").ok()
        asked = ["\n".join(each["content"] for each in one.body["messages"]) for one in server.requests]
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert [step["action"] for step in history] == ["accept_new_best", "reject"]
    assert RULE in (project.folder / "run/best_skill.md").read_text("utf-8")
    assert summary["test_hard"] == summary["test_soft"] == 1.0
    assert summary["by_kind"]["test"]["qa"]["hard_acc"] == 1.0
    assert any("## Context\n\n[DOC] [TLE] This and more [PAR] Nothing" in text for text in asked), (
        "the first marker, too"
    )
