"""The target and the judge: what a simulated model answers to a question of its world."""

from __future__ import annotations

import json
import re

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.world import Question, World, plain

UNKNOWN = "unknown"


def answer_question(world: World, fixed: Draws, sample: Draws, noise: float, asked: Asked, lapses: float = 0.0) -> str:
    """Reasoning and an answer tag. A question that the world does not know is answered with "unknown".

    fixed   draws that are the same in each sample: how hard each question is
    sample  draws of this sample: whether it turns out the other way, with the chance `noise`
    lapses  chance that this question is answered, in each sample, as if a rule were not there that no note recalls
    """
    question = world.question_in(asked.user)
    if question is None:
        return _reply("None of the passages seems to settle this.", UNKNOWN)
    forgotten, recalled = fixed.under("lapse", question.text), world.rules_recalled(asked.system)
    rules = [rule for rule in world.rules_in(asked.system) if rule in recalled or not forgotten.happens(lapses, rule)]
    # One number for a question, whatever the skill: a rule that helps can only add right answers.
    hardness = fixed.unit("hardness", question.text)
    right = hardness < world.right_chance(question.kind, rules)
    if sample.happens(noise, "noise"):
        right = not right
    if right:
        return _reply("The passage that the question is about states the answer.", question.answers[0])
    partly = fixed.happens(world.file.target.partial, "partial", question.text)
    answer = _partly_right(question) if partly else _wrong(world, question, fixed)
    return _reply("One of the passages seems to fit the question.", answer)


def _reply(reasoning: str, answer: str) -> str:
    return f"{reasoning}\n<answer>{answer}</answer>"


def _partly_right(question: Question) -> str:
    """An answer that shares words with the right one and equals none of the right ones."""
    words = question.answers[0].split()
    answer = words[-1] if len(words) > 1 else f"{words[0]} or thereabouts"
    known = {plain(one) for one in question.answers}
    return answer if plain(answer) not in known else f"{question.answers[0]} or thereabouts"


def _wrong(world: World, question: Question, fixed: Draws) -> str:
    """Another question's answer of the same kind, as a model that looked at the wrong passage would give it."""
    right = {plain(one) for one in question.answers}
    others = [one.answers[0] for one in world.questions.values() if one.kind == question.kind]
    wrong = [answer for answer in others if plain(answer) not in right]
    return fixed.pick(wrong, "wrong", question.text) if wrong else UNKNOWN


def judge_answer(world: World, asked: Asked) -> str:
    """A verdict as JSON: whether the answer shown is a right one for the question of the world in the text.

    The answer is what stands last in an answer tag, else behind the last line that begins with "Answer:".
    """
    text = f"{asked.system}\n{asked.user}"
    question = world.question_in(text)
    tags = re.findall(r"<answer>(.*?)</answer>", text, re.IGNORECASE | re.DOTALL)
    lines = re.findall(r"^(?:candidate |predicted |given )?answer:\s*(.*)$", text, re.IGNORECASE | re.MULTILINE)
    given = plain((tags or lines or [""])[-1])
    correct = question is not None and given in {plain(one) for one in question.answers}
    verdict = {"correct": correct, "score": 1.0 if correct else 0.0, "verdict": "yes" if correct else "no"}
    known = "" if question is not None else " The question is not one that this world knows."
    return json.dumps({"reasoning": f"The answer is {'right' if correct else 'wrong'}.{known}", **verdict})
