"""The optimizer reads a request as a model would, and is as good as its world says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.optimizer import optimizer_reply
from skillopt_backend_simulated.world import World
from skillopt_backend_simulated_small_world import MakeWorld
from skillopt_kernel.models.requests import ChatRequest, Message

FAILURE = 'Find out why the agent failed. Edit budget: {}.\n"failure_summary": [], "edits": []'
SUCCESS = 'Find what went well. Edit budget: {}.\n"success_patterns": [], "edits": []'
SKILL = "# Skill\n\n- Read all of it.\n- Guess at once."
YEAR, FULL, SPELT = "Write the four digits of a year.", "Give the full name.", "Spell names as the passage does."


def trajectories(*questions: str) -> str:
    blocks = [
        f"### Trajectory {number}: t{number}\nFeedback: wrong\n#### Conversation\n"
        "[system] ## Skill\n(the current skill)\n[user] ## Context\n\nIn which year it was is not told.\n\n"
        f"## Question\n\n{question}\n[agent] <answer>1</answer>"
        for number, question in enumerate(questions, 1)
    ]
    return f"## Trajectories ({len(blocks)})\n\n" + "\n\n".join(blocks)


def message(*parts: str, skill: str = SKILL) -> str:
    return "\n".join((f"## Current skill\n\n~~~~markdown\n{skill}\n~~~~\n", *parts))


def ask(world: World, stage: str, system: str, user: str, draw: int = 0) -> dict[str, Any]:
    asked = Asked.of(ChatRequest((Message("system", system), Message("user", user)), stage=stage))
    reply: dict[str, Any] = json.loads(optimizer_reply(world, Draws((draw,)), asked))
    return reply


def analyse(world: World, *parts: str, budget: object = 4, skill: str = SKILL, draw: int = 0) -> list[dict[str, Any]]:
    edits: list[dict[str, Any]] = ask(world, "analyst", FAILURE.format(budget), message(*parts, skill=skill), draw)[
        "patch"
    ]["edits"]
    return edits


def contents(edits: list[dict[str, Any]]) -> set[str]:
    return {edit["content"].removeprefix("- ") for edit in edits if "content" in edit}


FAILED = trajectories("Who built mill 1?", "Who built mill 2?", "In which year was mill 3 built?")


def test_the_analyst_proposes_what_the_failing_kinds_lack(world: World) -> None:
    reply = ask(world, "analyst", FAILURE.format(4), message(FAILED))
    assert reply["batch_size"] == 3
    assert [one["count"] for one in reply["failure_summary"]] == [2, 1]
    added = [edit for edit in reply["patch"]["edits"] if edit["op"] != "delete"]
    assert contents(added) == {FULL, SPELT, YEAR}
    assert {edit["content"]: edit["support_count"] for edit in added}[f"- {FULL}"] == 2
    assert all(edit["source_type"] == "failure" for edit in added)


def test_what_the_skill_has_is_not_proposed_again(world: World) -> None:
    assert contents(analyse(world, FAILED, skill=f"- {FULL}\n- {YEAR}")) == {SPELT}


def test_a_kind_that_did_not_fail_teaches_nothing(world: World) -> None:
    assert contents(analyse(world, trajectories("In which year was mill 3 built?"))) == {YEAR}
    assert contents(analyse(world, "## Trajectories (1)\n\n### Trajectory 1: a\nWhere is the moon?")) == set()


def test_a_harmful_rule_of_the_skill_is_taken_out(world: World) -> None:
    edit = analyse(world, FAILED)[0]
    assert (edit["op"], edit["target"], edit["support_count"]) == ("delete", "- Guess at once.", 3)
    in_a_paragraph = analyse(world, FAILED, skill="Answer in haste.")
    assert not [edit for edit in in_a_paragraph if edit["op"] == "delete"]


@pytest.mark.parametrize("budget", [0, 1, 2])
def test_the_budget_is_kept(world: World, budget: int) -> None:
    assert len(analyse(world, FAILED, budget=budget)) == budget


def test_no_limit_is_no_limit(world: World) -> None:
    assert len(analyse(world, FAILED, budget="no limit")) == 4


def test_a_list_may_be_longer_than_the_budget(make_world: MakeWorld) -> None:
    world = make_world(("over_budget: 0.0", "over_budget: 1.0"))
    assert [len(analyse(world, FAILED, budget=budget)) for budget in (1, 3, 6)] == [3, 4, 7]


def test_insight_grows_with_the_failures_shown(make_world: MakeWorld) -> None:
    world = make_world(("insight: 1.0", "insight: 0.4"))
    many = trajectories(*(f"In which year was mill {number} built?" for number in range(5)))
    one = trajectories("In which year was mill 1 built?")
    found = [
        sum(YEAR in contents(analyse(world, text, draw=draw)) for draw in range(200)) / 200 for text in (one, many)
    ]
    assert 0.3 < found[0] < 0.5
    assert found[1] > 0.85


def test_harmful_and_useless_rules_are_proposed_as_often_as_the_world_says(make_world: MakeWorld) -> None:
    world = make_world(("harmful: 0.0", "harmful: 0.5"), ("distractors: 0.0", "distractors: 1.0"))
    proposed = [contents(analyse(world, FAILED, budget=9, draw=draw)) for draw in range(100)]
    assert all("Be polite." in one for one in proposed)
    assert 35 <= sum("Answer in haste." in one for one in proposed) <= 65
    assert not any("Guess at once." in one for one in proposed), "the skill has it"


def test_what_was_tried_is_remembered(make_world: MakeWorld) -> None:
    world = make_world(("harmful: 0.0", "harmful: 1.0"))
    tried = '## What was tried before\n\n1. append content="- Answer in haste."\n'
    assert "Answer in haste." in contents(analyse(world, FAILED, budget=9))
    assert "Answer in haste." not in contents(analyse(world, tried, FAILED, budget=9))
    forgetful = make_world(("harmful: 0.0", "harmful: 1.0"), ("memory: 1.0", "memory: 0.0"))
    assert "Answer in haste." in contents(analyse(forgetful, tried, FAILED, budget=9))


def test_anchors_stand_in_the_skill_or_do_not(make_world: MakeWorld) -> None:
    edits = [edit for draw in range(20) for edit in analyse(make_world(), FAILED, draw=draw)]
    assert {edit["op"] for edit in edits} == {"append", "insert_after", "delete"}
    assert all(edit["target"] in SKILL.split("\n") for edit in edits if "target" in edit)
    bad = analyse(make_world(("bad_anchors: 0.0", "bad_anchors: 1.0")), FAILED, skill="- Read.")
    assert bad and all(edit["op"] == "insert_after" and edit["target"] not in "- Read." for edit in bad)


def test_protected_parts_are_no_anchors(world: World) -> None:
    skill = (
        "---\n- a: 1\n---\n\n<!-- SLOW_UPDATE_START -->\n- inside\n<!-- SLOW_UPDATE_END -->\n- twice\n- twice\n- free"
    )
    targets = {
        e["target"] for draw in range(20) for e in analyse(world, FAILED, skill=skill, draw=draw) if "target" in e
    }
    assert targets == {"- free"}


def test_duplicates(make_world: MakeWorld) -> None:
    world = make_world(("duplicates: 0.0", "duplicates: 1.0"))
    edits = analyse(world, trajectories("In which year was mill 1 built?"), skill="", budget=9)
    assert [edit["content"] for edit in edits] == [f"- {YEAR}"] * 2


def test_the_success_analyst_has_little_to_add(world: World) -> None:
    reply = ask(world, "analyst", SUCCESS.format(4), message(FAILED))
    assert reply["patch"]["edits"] == []
    assert len(reply["success_patterns"]) == 2


def patches(*edits: dict[str, Any]) -> str:
    half = len(edits) // 2
    lists = [json.dumps(list(part), indent=1) for part in (edits[:half], edits[half:])]
    return "## Patches (2)\n\n" + "\n\n".join(f"### Patch {n}: items\n\n{text}" for n, text in enumerate(lists, 1))


def edit(content: str, support: int = 1, **more: Any) -> dict[str, Any]:
    return {"op": "append", "content": content, "support_count": support, "source_type": "failure", **more}


GIVEN = (
    edit(f"- {FULL}"),
    edit("- Own words."),
    edit(f"* {FULL}", 4, op="insert_after", target="- Read all of it."),
    edit(f"- {YEAR}", 2),
)


def test_a_merge_joins_what_says_the_same(world: World) -> None:
    edits = ask(world, "merge", "Merge.", message(patches(*GIVEN)))["edits"]
    assert [(one["content"], one["support_count"]) for one in edits] == [
        (f"- {FULL}", 5),
        (f"- {YEAR}", 2),
        ("- Own words.", 1),
    ]


def test_a_poor_merge_keeps_it_twice_and_loses_nothing(make_world: MakeWorld) -> None:
    edits = ask(make_world(("merging: 1.0", "merging: 0.0")), "merge", "Merge.", message(patches(*GIVEN)))["edits"]
    assert sorted(one["content"] for one in edits) == sorted(str(one["content"]) for one in GIVEN)


CANDIDATES = "\n".join(
    (
        "## Candidate edits (6)\n",
        '[0] append content="- Answer in haste." support=9 source=failure',
        '[1] append content="- Be polite. Never delete anything." support=9 source=success',
        f'[2] append content="- {YEAR}" support=1 source=failure',
        '[3] delete target="- Guess at once." support=3 source=failure',
        f'[4] append content="- {FULL}\\n- more" support=5 source=failure',
        '[5] append content="- Read all of it." support=7 source=failure',
    )
)


def test_a_good_ranking_puts_the_useful_first_and_keeps_the_budget(world: World) -> None:
    def chosen(budget: int) -> Any:
        return ask(world, "ranking", f"Edit budget: {budget}.", message(CANDIDATES))["selected_indices"]

    assert chosen(3) == [4, 3, 2]
    assert chosen(6) == [4, 3, 2, 5, 1, 0]


def test_a_ranking_that_sees_nothing_guesses(make_world: MakeWorld) -> None:
    world = make_world(("ranking: 1.0", "ranking: 0.0"))
    orders = {
        tuple(ask(world, "ranking", "Edit budget: 3.", message(CANDIDATES), n)["selected_indices"]) for n in range(30)
    }
    assert len(orders) > 10
    assert all(len(set(order)) == 3 for order in orders)


def compared(**pairs: str) -> str:
    parts = [
        f"### {category} (1): as it was\n\n#### Pair {number}: t{number}\nTask: {question}\n[user] {question}\n"
        for number, (category, question) in enumerate(pairs.items(), 1)
    ]
    return "## Comparison\n\nOf 3 tasks\n\n" + "\n".join(parts)


def test_guidance_keeps_what_was_right_and_adds_what_failing_kinds_lack(world: World) -> None:
    earlier = f"## Previous guidance\n\n- {YEAR}\n- Answer in haste.\n"
    pairs = compared(regressed="Who built mill 1?", stable_success="In which year was mill 3 built?")
    reply = ask(world, "slow_update", "Write guidance.", message(earlier, pairs))
    assert reply["slow_update_content"].split("\n") == [f"- {YEAR}", f"- {FULL}", f"- {SPELT}"]
    pairs = compared(improved="Who built mill 1?", stable_success="In which year was mill 3 built?")
    assert ask(world, "slow_update", "Write guidance.", message(pairs))["slow_update_content"] == ""
    present = message(compared(persistent_fail="Who built mill 1?"), skill=f"- {FULL}")
    assert ask(world, "slow_update", "Write guidance.", present)["slow_update_content"] == f"- {SPELT}"


def test_guidance_slips_as_an_analyst_does(make_world: MakeWorld) -> None:
    world = make_world(("harmful: 0.0", "harmful: 1.0"))
    user = message(compared(stable_success="Who built mill 1?"))
    replies = {ask(world, "slow_update", "Write guidance.", user, draw)["slow_update_content"] for draw in range(9)}
    assert replies <= {"- Guess at once.", "- Answer in haste."} and "- Answer in haste." in replies


def test_advice_names_what_was_tried_in_vain_and_keeps_its_own(world: World) -> None:
    tried = '## What was tried before\n\n1. append content="- Answer in haste." support=1\n'
    earlier = "## Advice from earlier epochs\n\n- Do not propose again: Be polite.\n"
    advice = ask(world, "meta_skill", "Advise.", message(earlier, tried))["meta_skill_content"]
    named = [line.removeprefix("- Do not propose again: ") for line in advice.split("\n")[1:]]
    assert named == ["Guess at once.", "Answer in haste.", "Be polite."], "the first stands in the skill"


def test_other_stages_get_every_key(world: World) -> None:
    reply = ask(world, "unheard_of", "Do something.", message(FAILED, CANDIDATES))
    assert {"slow_update_content", "meta_skill_content", "appendix_notes"} <= set(reply)
    assert reply["learning_rate"] == 3


def test_other_payloads_where_the_prompt_names_them(world: World) -> None:
    suggestions = ask(world, "analyst", 'Edit budget: 9. "revise_suggestions": []', message(FAILED))
    items = suggestions["patch"]["revise_suggestions"]
    assert {item["instruction"] for item in items} == {
        "- Guess at once.", f"- {FULL}", f"- {SPELT}", f"- {YEAR}",
    }  # fmt: skip
    assert items[0]["type"] == "remove_rule"
    whole = ask(world, "analyst", 'One version. "skill_candidates": []', message(FAILED))["patch"]["skill_candidates"]
    (version,) = whole
    assert set(version["new_skill"].splitlines()) == {
        "# Skill", "", "- Read all of it.", f"- {FULL}", f"- {SPELT}", f"- {YEAR}",
    }  # fmt: skip
    assert len(version["change_summary"]) == 4


def test_a_rewrite_follows_every_suggestion(world: World) -> None:
    suggestions = [
        {"type": "add_rule", "instruction": f"Add: {FULL}"},
        {"type": "add_rule", "instruction": f"- {FULL}\n- {YEAR}"},
        {"type": "remove_rule", "instruction": "- Guess at once."},
        {"type": "compress", "instruction": "Say it in fewer words."},
    ]
    told = f"## What was tried before\n\n- {SPELT}\n"
    user = message(told, f"## Suggestions (4)\n\n{json.dumps(suggestions)}\n")
    reply = ask(world, "rewrite", "Rewrite.", user)
    assert reply["new_skill"] == f"# Skill\n\n- Read all of it.\n- {FULL}\n- {YEAR}\n"
    assert len(reply["change_summary"]) == 3


def test_whole_skills_are_merged_into_one_with_the_changes_of_all(world: World) -> None:
    versions = [
        {"title": "A", "change_summary": ["a"], "new_skill": f"{SKILL}\n- {FULL}\n", "support_count": 2,
         "source_type": "failure"},
        {"title": "B", "new_skill": f"# Skill\n\n- Read all of it.\n- {FULL}\n- {YEAR}\n", "source_type": "success"},
    ]  # fmt: skip
    user = message(f"## Patches (2)\n\n### Patch 1\n\n{json.dumps(versions)}\n")
    (merged,) = ask(world, "merge", 'Merge. "skill_candidates": []', user)["skill_candidates"]
    assert merged["new_skill"] == f"# Skill\n\n- Read all of it.\n- {FULL}\n- {YEAR}\n"
    assert (merged["support_count"], merged["source_type"], merged["change_summary"]) == (3, "mixed", ["a"])


def test_a_heading_inside_the_skill_or_a_trajectory_ends_no_section(world: World) -> None:
    skill = f"# Skill\n\n## Patches\n\n- {FULL}\n\n## Trajectories\n\n- {SPELT}"
    assert contents(analyse(world, FAILED, skill=skill)) == {YEAR}


# Where notes are asked for -----------------------------------------------------------------------------------

ASKS_FOR_NOTES = FAILURE.format(4) + "\nAdd appendix_notes."


def test_a_failure_whose_rules_are_stated_is_a_lapse_and_gets_a_note(world: World) -> None:
    skill = f"{SKILL}\n- {YEAR}"
    reply = ask(world, "analyst", ASKS_FOR_NOTES, message(FAILED, skill=skill))
    words = [one["description"].partition(":")[0] for one in reply["failure_summary"]]
    assert words == ["SKILL_DEFECT", "EXECUTION_LAPSE"]  # names lack their rules, years do not
    (note,) = reply["appendix_notes"]
    assert YEAR in note and {FULL, SPELT} <= contents(reply["patch"]["edits"])
    noted = f"{skill}\n\n## Execution Notes Appendix\n\n- {note}"
    assert ask(world, "analyst", ASKS_FOR_NOTES, message(FAILED, skill=noted))["appendix_notes"] == []


def test_where_every_failure_is_a_lapse_there_are_notes_and_no_patch(world: World) -> None:
    skill = f"# Skill\n\n- {YEAR}"
    failed = trajectories("In which year was mill 3 built?")
    reply = ask(world, "analyst", ASKS_FOR_NOTES, message(failed, skill=skill))
    assert "patch" not in reply and len(reply["appendix_notes"]) == 1
    plain = ask(world, "analyst", FAILURE.format(4), message(failed, skill=skill))
    assert plain["patch"]["edits"] == [] and "appendix_notes" not in plain
    assert "SKILL_DEFECT" not in plain["failure_summary"][0]["description"]


def test_notes_that_recall_one_rule_are_merged_to_the_first(make_world: MakeWorld) -> None:
    notes = [f"Remember: {YEAR}", "Be kind.", f"Do not forget: {YEAR}", f"{FULL} {SPELT}", "be  kind."]
    user = "## Notes to consolidate (5)\n\n" + "\n".join(f"- {note}" for note in notes)
    reply = ask(make_world(), "appendix_consolidate", "Merge.", user)
    assert reply["appendix_notes"] == [notes[0], notes[1], notes[3]]
    blind = make_world(("merging: 1.0", "merging: 0.0"))
    assert ask(blind, "appendix_consolidate", "Merge.", user)["appendix_notes"] == notes
