"""The leak rule: what is held out reaches the target and the judge, and nobody who writes skills."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import probe_plugins
import pytest
from attrs import define, field
from skillopt_kernel import train
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.servers import ChatServer, Reply

SIZES = {"train": 8, "val": 6, "test": 4}
HELD_OUT = ("val", "test")
FIELDS = ("id", "kind", "question", "context", "reference", "reply", "verdict")
"""What bears a canary of its own in each task; the last two stand in what target and judge answer."""

RULES = [f"Answer questions of class {number} with care." for number in range(4)]
HARMFUL = "Guess."
OPTIMIZER_STAGES = {"analyst", "merge", "slow_update", "meta_skill"}
STAGES_OF_MODE = {
    "patch": {"lr_autonomous", "ranking", "appendix_consolidate"},
    "rewrite_from_suggestions": {"lr_autonomous", "ranking", "rewrite"},
    "full_rewrite_minibatch": set(),
}


AWARE = {"patch": {"use_skill_aware_reflection": True, "skill_aware_consolidate_threshold": 1}}


def canary(split: str, field: str, number: int) -> str:
    """One word in lower case without punctuation, so that no normalising of answers hides it."""
    return f"zq{split}{field}{number:02d}qz"


def canaries(text: str) -> set[tuple[str, str, int]]:
    """The (split, field, number) of every canary in a text."""
    found = re.findall(rf"zq({'|'.join(SIZES)})({'|'.join(FIELDS)})(\d\d)qz", text.lower())
    return {(split, field, int(number)) for split, field, number in found}


def item(split: str, number: int) -> dict[str, Any]:
    mine = {field: canary(split, field, number) for field in FIELDS}
    return {
        "id": f"task-{mine['id']}",
        "task_type": mine["kind"],
        "question": f"Class {number % len(RULES)}: what is {mine['question']}?",
        "context": f"[DOC] Much is said of {mine['context']}.",
        "answers": [mine["reference"]],
    }


@define
class Models:
    """All three roles over HTTP. Each target answer and verdict bears a canary of the task that it is about.

    The optimizer tries a harmful rule first in each epoch, which is rejected and remembered, then the first rule
    that the skill lacks.
    """

    mode: str
    judged: bool
    proposal: str = ""
    asked: dict[str, list[str]] = field(factory=lambda: {"target": [], "judge": [], "optimizer": []})

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        role = str(body["model"])
        self.asked[role].append(json.dumps(body))
        system, user = (str(body["messages"][at]["content"]) for at in (0, -1))
        return Reply(getattr(self, role)(system, user))

    def target(self, system: str, user: str) -> str:
        split, _, number = next(one for one in canaries(user) if one[1] == "question")
        right = RULES[number % len(RULES)] in system and HARMFUL not in system
        answer = canary(split, "reference" if right and not self.judged else "reply", number)
        said = "good" if right else "bad"
        return f"A {said} answer about {canary(split, 'reply', number)}.\n<answer>{answer}</answer>"

    def judge(self, system: str, user: str) -> str:
        split, _, number = next(one for one in canaries(user) if one[1] == "question")
        return f"{'yes' if 'A good answer' in user else 'no'}, says {canary(split, 'verdict', number)}"

    def optimizer(self, system: str, user: str) -> str:
        skill = re.search(r"## Current skill\n\n(~{4,})markdown\n(.*?)\n\1", user, re.DOTALL)
        known = [rule for rule in RULES if skill is not None and rule in skill[2]]
        missing = [rule for rule in RULES if rule not in known] or RULES[-1:]
        if "slow_update_content" in system:
            return json.dumps({"reasoning": "", "slow_update_content": f"- {missing[0]}"})
        if "meta_skill_content" in system:
            return json.dumps({"reasoning": "", "meta_skill_content": "Prefer rules about one class."})
        if "selected_indices" in system:
            return json.dumps({"reasoning": "", "selected_indices": [0]})
        if "Merge those that say the same" in system:
            return json.dumps({"appendix_notes": ["Remember all of it."]})
        if '"learning_rate"' in system:
            return json.dumps({"learning_rate": 1, "reasoning": "", "confidence": "high", "risk_notes": ""})
        if "batch_size" in system:
            self.proposal = missing[0] if "## What was tried before" in user else HARMFUL
        notes = [f"Remember: {rule}" for rule in known] if "EXECUTION_LAPSE" in system else []
        return json.dumps({**self.items([*known, self.proposal]), "appendix_notes": notes})

    def items(self, rules: list[str]) -> dict[str, Any]:
        """A reply to an analyst's, a merge or a rewrite call that says one thing, in each form."""
        whole = {"title": "t", "change_summary": ["a rule"]}
        whole["new_skill"] = "# Skill\n\n" + "".join(f"- {rule}\n" for rule in rules)
        lists = {
            "edits": [{"op": "append", "content": f"- {rules[-1]}"}, {"op": "append", "content": f"- {rules[-1]} "}],
            "revise_suggestions": [
                {"type": "add_rule", "title": title, "instruction": rules[-1]} for title in ("one", "two")
            ],
            "skill_candidates": [whole],
        }
        failures = [{"failure_type": "careless", "count": 2, "description": "no care"}]
        return {"batch_size": 2, "failure_summary": failures, "success_patterns": [], **lists, **whole, "patch": lists}


@define
class Run:
    folder: Path
    models: Models
    summary: Any

    @property
    def files(self) -> Iterator[tuple[str, str]]:
        """Every file of the run as (relative path, its path and its text)."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                name = path.relative_to(self.folder).as_posix()
                yield name, f"{name}\n{path.read_bytes().decode('utf-8', 'replace')}"

    def found_in(self, role: str) -> set[tuple[str, str]]:
        """The (split, field) of all canaries in the requests of a role."""
        return {found[:2] for text in self.models.asked[role] for found in canaries(text)}


CASES = [(env, mode) for mode in STAGES_OF_MODE for env in ("searchqa", "judged")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of three epochs with every mechanism on, once for each update mode and benchmark."""
    env, mode = request.param
    folder = tmp_path_factory.mktemp("leak")
    for split, size in SIZES.items():
        (folder / "data" / split).mkdir(parents=True)
        items = json.dumps([item(split, number) for number in range(size)])
        (folder / "data" / split / "items.json").write_text(items, encoding="utf-8")
    (folder / "skill.md").write_text("# Skill\n\n- Be brief.\n", encoding="utf-8")
    models = Models(mode, judged=env == "judged")
    with pytest.MonkeyPatch.context() as patch, ChatServer(models) as server:
        patch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-0123456789")
        probe_plugins.install(folder / "plugins", patch)
        config = {
            "_base_": "package:skillopt_kernel/default.yaml",
            "train": {"num_epochs": 3, "batch_size": 2, "accumulation": 2},
            "gradient": {"minibatch_size": 1, "merge_batch_size": 2},
            "optimizer": {"skill_update_mode": mode, "lr_control_mode": "autonomous", **AWARE.get(mode, {})},
            "evaluation": {"gate_metric": "mixed"},
            "model": {
                "backend": "openai_compatible", "openai_compatible_base_url": server.url,
                "optimizer": "optimizer", "target": "target", "judge": "judge",
            },
            "env": {
                "name": env, "split_mode": "split_dir", "split_dir": str(folder / "data"),
                "skill_init": str(folder / "skill.md"), "workers": 4,
            },
        }  # fmt: skip
        summary = train(config, out=folder / "run")
    yield Run(folder / "run", models, summary)


def test_every_mechanism_was_at_work(run: Run) -> None:
    """Without this, the searches below might pass over an empty run."""
    assert OPTIMIZER_STAGES | STAGES_OF_MODE[run.models.mode] <= set(run.summary.token_summary)
    assert not run.summary.model_failures
    actions = [step["action"] for step in json.loads((run.folder / "history.json").read_text("utf-8"))]
    assert {"accept_new_best", "reject"} <= set(actions)
    asked = "".join(run.models.asked["optimizer"])
    for title in ("What was tried before", "Advice from earlier epochs", "Previous guidance", "did not help"):
        assert title in asked, title
    assert list(run.folder.glob("slow_update/epoch_*/comparison_pairs.json"))
    assert list(run.folder.glob("steps/step_0001/**/*batch*"))
    if run.models.mode in AWARE:
        assert "## Execution Notes Appendix" in (run.folder / "best_skill.md").read_text("utf-8")


def test_inputs_reach_the_target_and_references_the_judge(run: Run) -> None:
    """What must be found is found: the canaries work."""
    assert {(split, name) for split in SIZES for name in ("question", "context")} <= run.found_in("target")
    shown = {("train", name) for name in ("id", "kind", "question", "context", "reference", "reply")}
    assert shown <= run.found_in("optimizer")
    judged = {(split, name) for split in SIZES for name in ("question", "reference", "reply")}
    assert judged <= run.found_in("judge") if run.models.judged else not run.models.asked["judge"]
    if run.models.judged:
        assert ("train", "verdict") in run.found_in("optimizer")


def test_nothing_of_a_held_out_task_is_shown_to_the_optimizer(run: Run) -> None:
    """Neither inputs nor references, ids, task types, what the target replied or what the judge found."""
    assert not {found for found in run.found_in("optimizer") if found[0] in HELD_OUT}


def test_no_reference_is_shown_to_the_target(run: Run) -> None:
    assert not {found for found in run.found_in("target") if found[1] in ("reference", "verdict")}


@pytest.mark.parametrize("role", ["target", "judge"])
def test_a_call_is_about_one_task(run: Run, role: str) -> None:
    """No attempt and no verdict is helped by another task."""
    for text in run.models.asked[role]:
        assert len({(split, number) for split, _, number in canaries(text)}) == 1


HELD_OUT_FILES = re.compile(
    r"(.*/)?(selection_eval\w*|test_eval\w*|final_selection\w*)/.*|(outcomes|events)\.jsonl|calls\.sqlite|summary\.json"
)
"""Where the run keeps or reports what became of held-out tasks. Every other file may be made into a prompt or skill."""


def test_files_that_prompts_and_skills_are_made_of_hold_nothing_held_out(run: Run) -> None:
    found = {name: {one for one in canaries(text) if one[0] in HELD_OUT} for name, text in run.files}
    kept = {name for name in found if HELD_OUT_FILES.fullmatch(name)}
    assert {one[:2] for one in found["outcomes.jsonl"]} >= {(split, "reply") for split in HELD_OUT}
    assert not {name: sorted(found[name])[:3] for name in found if found[name] and name not in kept}


def test_the_ledger_keeps_the_same_calls_and_the_same_rule(run: Run) -> None:
    ledger = Ledger(run.folder / "calls.sqlite", read_only=True)
    calls = [ledger.call(row["number"]) or {} for row in ledger.calls()]
    ledger.close()
    for role in ("target", "optimizer", "judge"):
        kept = [canaries(json.dumps(call["request"])) for call in calls if call["role"] == role]
        assert {one[:2] for found in kept for one in found} == run.found_in(role)
    scopes = {(call["role"], call["scope"], call["ordinal"]) for call in calls}
    assert len(scopes) == len(calls), "every call has a key of its own"


@pytest.mark.parametrize(("name", "told"), [("events.jsonl", "id"), ("summary.json", "kind")])
def test_reports_name_held_out_tasks_and_say_no_more(run: Run, name: str, told: str) -> None:
    """Events have ids, the summary the scores of each task type."""
    found = canaries((run.folder / name).read_text("utf-8"))
    assert {field for split, field, _ in found if split in HELD_OUT} == {told}


def test_no_skill_holds_a_reference(run: Run) -> None:
    skills = {name: canaries(text) for name, text in run.files if re.search(r"skill\w*\.md$", name)}
    assert {"best_skill.md", "skills/skill_v0001.md", "steps/step_0001/candidate_skill.md"} <= set(skills)
    assert not any(skills.values())
