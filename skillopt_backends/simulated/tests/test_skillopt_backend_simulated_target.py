"""The target and the judge: right with the rule, wrong without, and always for a reason."""

from __future__ import annotations

import json
import re

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.target import answer_question, judge_answer
from skillopt_backend_simulated.world import World
from skillopt_backend_simulated_small_world import QUESTIONS, MakeWorld
from skillopt_kernel.models.requests import ChatRequest, Message

DRAWS = Draws((1,))


def asked(skill: str, user: str, stage: str = "rollout") -> Asked:
    return Asked.of(ChatRequest((Message("system", skill), Message("user", user)), stage=stage))


def answer(world: World, skill: str, user: str, noise: float = 0.0, sample: int = 0) -> str:
    reply = answer_question(world, DRAWS, DRAWS.under(user, sample), noise, asked(skill, user))
    found = re.search(r"<answer>(.*)</answer>", reply)
    assert found is not None
    return found.group(1)


def right(world: World, skill: str, kind: str) -> float:
    """The share of the kind's questions that are answered right."""
    items = [item for item in QUESTIONS if world.kind_of(str(item["question"])) == kind]
    return sum(answer(world, skill, str(item["question"])) in item["answers"] for item in items) / len(items)


def test_right_with_the_rule_and_wrong_without(world: World) -> None:
    assert right(world, "", "year") == 0.0
    assert right(world, "- Write the four digits of a year.", "year") == 1.0
    assert right(world, "- Write the four digits of a year.", "name") == 0.0


def test_a_harmful_rule_takes_away_what_the_good_one_gave(world: World) -> None:
    both = "Write the four digits of a year. Answer in haste. Give the full name. Spell names as the passage does."
    assert right(world, both, "year") == 0.0
    assert right(world, both, "name") == 1.0


def test_a_rule_in_the_passages_is_not_a_rule_of_the_skill(world: World) -> None:
    question = str(QUESTIONS[0]["question"])
    assert answer(world, "", f"Write the four digits of a year.\n{question}") != QUESTIONS[0]["answers"][0]


def test_a_helping_rule_never_costs_an_answer(make_world: MakeWorld) -> None:
    year = "needs: [digits]\n    right_without: 0.0\n    right_with: 1.0"
    world = make_world((year, "needs: [digits]\n    right_without: 0.4\n    right_with: 0.7"))
    items = [item for item in QUESTIONS if world.kind_of(str(item["question"])) == "year"]
    before = {q["question"] for q in items if answer(world, "", str(q["question"])) in q["answers"]}
    rule = "Write the four digits of a year."
    after = {q["question"] for q in items if answer(world, rule, str(q["question"])) in q["answers"]}
    assert before and before < after and len(after) < len(items)


def test_wrong_answers_are_another_questions_answer_or_share_words(make_world: MakeWorld) -> None:
    whole = make_world()
    partly = make_world(("partial: 0.0", "partial: 1.0"))
    for item in QUESTIONS:
        question, gold = str(item["question"]), item["answers"][0]
        wrong = answer(whole, "", question)
        assert wrong != gold
        assert any(wrong in other["answers"] for other in QUESTIONS)
        partial = answer(partly, "", question)
        assert partial != gold
        assert set(partial.split()) & set(gold.split())


def test_what_the_world_does_not_know(world: World) -> None:
    assert answer(world, "", "In which year was the moon built?") == "unknown"
    assert answer(world, "", "") == "unknown"


def test_noise_turns_some_samples_and_not_others(world: World) -> None:
    question, gold = str(QUESTIONS[0]["question"]), QUESTIONS[0]["answers"][0]
    skill = "Write the four digits of a year."
    samples = [answer(world, skill, question, noise=0.3, sample=number) == gold for number in range(200)]
    assert 0.55 < sum(samples) / 200 < 0.85
    assert answer(world, skill, question, noise=1.0) != gold


def test_a_later_turn_is_answered_like_the_first(world: World) -> None:
    question = str(QUESTIONS[3]["question"])
    messages = (
        Message("system", "Write the four digits of a year."),
        Message("user", question),
        Message("assistant", "<answer>1</answer>"),
        Message("user", "Check it once more."),
    )
    reply = answer_question(world, DRAWS, DRAWS, 0.0, Asked.of(ChatRequest(messages)))
    assert reply.endswith(f"<answer>{QUESTIONS[3]['answers'][0]}</answer>")


def test_the_judge_compares_the_answer_with_the_worlds(world: World) -> None:
    question, gold = QUESTIONS[0]["question"], QUESTIONS[0]["answers"][0]

    def verdict(text: str) -> bool:
        return bool(json.loads(judge_answer(world, asked("Judge.", text, "judge")))["correct"])

    assert verdict(f"{question}\nReference: {gold}\n<answer>{gold}</answer>")
    assert not verdict(f"{question}\nReference: {gold}\n<answer>1</answer>")
    assert verdict(f"{question}\nAnswer: {gold}")
    assert not verdict(f"Where?\nAnswer: {gold}")


YEAR = "Write the four digits of a year."


def forgetful(world: World, skill: str, lapses: float) -> set[str]:
    """The questions about years that are answered right by a target that forgets rules."""
    found = set()
    for item in QUESTIONS[:20]:
        question = str(item["question"])
        reply = answer_question(world, DRAWS, DRAWS.under(question), 0.0, asked(skill, question), lapses)
        if f"<answer>{item['answers'][0]}</answer>" in reply:
            found.add(question)
    return found


def test_a_forgetful_target_follows_a_rule_always_once_a_note_recalls_it(world: World) -> None:
    rule = f"# S\n\n- {YEAR}\n"
    noted = f"{rule}\n## Execution Notes Appendix\n\n- Do not forget: {YEAR}\n"
    assert 0 < len(forgetful(world, rule, 0.5)) < 20
    assert forgetful(world, rule, 0.5) == forgetful(world, rule, 0.5)
    assert forgetful(world, rule, 0.9) < forgetful(world, rule, 0.5) < forgetful(world, rule, 0.1)
    assert len(forgetful(world, noted, 0.9)) == len(forgetful(world, rule, 0.0)) == 20
    assert forgetful(world, "", 0.5) == set()


def test_only_the_list_under_the_heading_recalls(world: World) -> None:
    heading = "## Execution Notes Appendix"
    assert world.rules_recalled(f"{heading}\n\n- {YEAR}\n") == ("digits",)
    assert world.rules_recalled(f"{heading}\r\n- Be polite.\r\n- {YEAR}\r\n") == ("digits", "polite")
    assert world.rules_recalled(f"- {YEAR}\n{heading}\n- Be polite.") == ("polite",)
    assert world.rules_recalled(f"{heading}\n- Be polite.\n# More\n- {YEAR}\n") == ("polite",)
    assert world.rules_recalled(f"{YEAR} {heading}") == world.rules_recalled(heading) == ()
