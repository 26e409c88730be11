"""The update mode `rewrite_from_suggestions`: its items, its prompts, and one rewrite."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from skillopt_kernel.errors import ModelError, PassingError, PermanentError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.prompting import resolve_prompts
from skillopt_kernel.records import Applied, EditBudget, Update
from skillopt_kernel.skill import with_region
from skillopt_update_rewrite_from_suggestions import plugin
from skillopt_update_rewrite_from_suggestions.items import Suggestion
from skillopt_update_rewrite_from_suggestions.mode import SuggestionMode, make_update_mode

FRONT = "---\nname: answering\n---\n"
SKILL = with_region(f"{FRONT}\n# Answering\n\n- Be short.\n", "slow_update", "Keep to the rules.")
ADD = Suggestion("add_rule", "Add: Check the units.", "Units", support=3, source="failure")
JOIN = Suggestion("merge_rules", "Join the rules on length.", "Length")


def mode() -> SuggestionMode:
    return make_update_mode(None, DriverContext(logging.getLogger("test")))


class Rewriter:
    """What the kernel hands to `apply`, with a model whose replies are given; keeps the requests."""

    memory, meta, room = "Step 1 was rejected.", "Be bold.", "About 90 tokens."

    def __init__(self, *replies: str | Exception) -> None:
        self.replies, self.requests = list(replies), list[ChatRequest]()
        optimizer = ModelOptimizer(self.complete, "rewrite")
        self.ask, self.ask_json = optimizer.ask, optimizer.ask_json

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return ChatReply(reply)

    def prompt(self, name: str, **values: str) -> str:
        return f"the prompt {name}"


def reply(text: Any, **more: Any) -> str:
    return json.dumps({"reasoning": "r", "change_summary": ["units"], "new_skill": text, **more})


def apply(rewriter: Rewriter, *items: Any, limit: int | None = None, skill: str = SKILL) -> Applied:
    return mode().apply(skill, Update(items=items), EditBudget(limit), rewriter)


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.settings) == ("update", "rewrite_from_suggestions", "")
    assert plugin.factory == f"{make_update_mode.__module__}:{make_update_mode.__name__}"


def test_files_have_the_known_field_names() -> None:
    item = Suggestion("clarify", "Say which.", "Which", "seen twice", "low", 2, "success", 1)
    written = {
        "type": "clarify", "title": "Which", "motivation": "seen twice", "instruction": "Say which.",
        "priority_hint": "low", "support_count": 2, "source_type": "success", "merge_level": 1,
    }  # fmt: skip
    assert mode().write_item(item) == written
    assert mode().read_item(written) == item
    assert mode().read_item({**written, "priority_hint": 1, "support_count": True, "source_type": "x", "title": 4}) == (
        Suggestion("clarify", "Say which.", "", "seen twice", merge_level=1)
    )


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (None, "must be an object"),
        ({"instruction": "x"}, "the type is None, but must be one of add_rule, "),
        ({"type": ["add_rule"], "instruction": "x"}, "must be one of"),
        ({"type": "add_rule"}, "the instruction must be text"),
        ({"type": "add_rule", "instruction": " \n"}, "the instruction must be text"),
    ],
)
def test_what_is_no_suggestion_raises_a_sentence(raw: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        mode().read_item(raw)


def test_a_description_is_one_line_with_nothing_shortened() -> None:
    line = mode().describe_item(Suggestion("add_rule", "a\n" * 200, "é", "", "high", 3, "failure"))
    assert line.startswith('add_rule title="é" instruction="a\\na\\n')
    assert line.endswith('" priority=high support=3 source=failure')
    assert "\n" not in line and line.count("a\\n") == 200


def test_the_rewrite_is_asked_with_everything_and_gives_the_candidate() -> None:
    rewriter = Rewriter(reply("# Answering\n\n- Check the units.  \n\n"))
    applied = apply(rewriter, ADD, JOIN)
    assert applied.candidate == with_region(f"{FRONT}\n# Answering\n\n- Check the units.\n", "slow_update",
                                            "Keep to the rules.")  # fmt: skip
    assert [report.status for report in applied.reports] == ["applied", "applied"]
    assert applied.error is None
    assert applied.record == {
        "rewrite_result": {
            "reasoning": "r", "change_summary": ["units"], "new_skill": "# Answering\n\n- Check the units.\n",
        }
    }  # fmt: skip
    (request,) = rewriter.requests
    system, user = (message.text for message in request.messages)
    assert system == "the prompt rewrite"
    for part in (
        SKILL.strip(),
        "Step 1 was rejected.",
        "Be bold.",
        "About 90 tokens.",
        "## Suggestions (2)",
        ADD.instruction,
        '"Length"',
    ):
        assert part in user


def test_what_is_protected_comes_back_whatever_the_reply_holds() -> None:
    forged = "---\nname: evil\n---\n# New\n\n<!-- SLOW_UPDATE_START -->\nforged\n<!-- SLOW_UPDATE_END -->\n"
    candidate = apply(Rewriter(reply(forged)), ADD).candidate
    assert candidate == with_region(f"{FRONT}\n# New\n", "slow_update", "Keep to the rules.")
    assert apply(Rewriter(reply(SKILL)), ADD).candidate == SKILL


def test_the_budget_is_kept_and_nothing_is_asked_when_it_admits_nothing() -> None:
    rewriter = Rewriter(reply("# New"))
    update = Update(items=(ADD, "nonsense", JOIN), over_budget=(ADD,))
    applied = mode().apply(SKILL, update, EditBudget(1), rewriter)
    assert [report.status for report in applied.reports] == ["applied", "invalid", "over_budget", "over_budget"]
    assert [report.index for report in applied.reports] == [1, 2, 3, 4]
    assert JOIN.instruction not in rewriter.requests[0].messages[1].text
    nothing = apply(rewriter, ADD, JOIN, limit=0)
    assert (nothing.candidate, nothing.error) == (SKILL, "there is no suggestion that the step may follow")
    assert len(rewriter.requests) == 1


@pytest.mark.parametrize(
    "bad", [reply(" \n"), reply(None), reply(["# New"]), reply("a\x00b"), reply(SKILL[: len(FRONT)]), "{}", "sorry"]
)
def test_a_bad_reply_leaves_the_skill_as_it_is(bad: str) -> None:
    rewriter = Rewriter(bad)
    applied = apply(rewriter, ADD)
    assert applied.candidate == SKILL
    assert applied.error is not None and applied.error.startswith("unusable_reply: ")
    assert not applied.record
    assert len(rewriter.requests) == 2


def test_a_summary_that_is_no_list_becomes_an_empty_one() -> None:
    record = apply(Rewriter(reply("# New", change_summary="units")), ADD).record
    assert record["rewrite_result"]["change_summary"] == []


@pytest.mark.parametrize("error", [PassingError("down"), ModelError("odd")])
def test_a_failed_call_leaves_the_skill_as_it_is(error: Exception) -> None:
    applied = apply(Rewriter(error), ADD)
    assert applied.candidate == SKILL
    assert applied.error == f"call_failed: {type(error).__name__}: {error}"


def test_a_permanent_error_ends_the_run() -> None:
    with pytest.raises(PermanentError):
        apply(Rewriter(PermanentError("no key")), ADD)


def test_prompts_are_complete_and_use_only_what_they_are_given() -> None:
    for name, prompt in resolve_prompts({}, None, mode()).items():
        if name not in mode().prompts():
            continue
        text = prompt.fill(budget="17", schema='{"type"}', level="1")
        assert "{{" not in text
        assert "one JSON object" in text
        assert ("17" in text) == (name in ("analyst_failure", "analyst_success", "ranking"))
        assert ('{"type"}' in text) == (name not in ("ranking", "rewrite"))
        key = {"ranking": "selected_indices", "rewrite": "new_skill"}.get(name, "revise_suggestions")
        assert f'"{key}"' in text
        assert name == "ranking" or "protected" in text or "kept by the program" in text
