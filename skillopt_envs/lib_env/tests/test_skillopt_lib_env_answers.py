"""The answer in a reply."""

import time

import pytest
from skillopt_lib_env.answers import last_answer, last_line, whole_reply, without_reasoning


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<answer>Jif</answer>", "Jif"),
        ("x\n<ANSWER> 7 </Answer>", "7"),
        ("<answer>\nGone with\nthe Wind\n</answer> So it is.", "Gone with\nthe Wind"),
        ("<answer>wrong</answer> then <answer>Jif</answer>", "Jif"),
        ("<answer>C</answer>\nOn reflection <answer>B</answer>", "B"),
        ("<answer>a</answer> note <answer>", "a"),
        ("<answer> let me see <answer>Jif</answer>", "Jif"),
        ("İ İ <answer>42</answer>", "42"),
        ("ſ ŉ ß <answer>ßeta ŉ</answer>", "ßeta ŉ"),
        ("< answer >Jif</ answer >", "Jif"),
        ("<answer></answer>", ""),
        ("<answer>Jif</answer>\nI put it between `<answer>` and `</answer>` as in `<answer>...</answer>`.", "Jif"),
        ('<answer>Jif</answer> (between "<answer>" and "</answer>" as told)', "Jif"),
        ("The form is `<answer>short</answer>`.\n<answer>Jif</answer>", "Jif"),
        ("```\n<answer>Jif</answer>\n```", "Jif"),
        ("<answer>the `ls` command</answer>", "the `ls` command"),
        ("<answer>Jif</answer><think>or <answer>Skippy</answer>?</think>", "Jif"),
        ("<think>maybe <answer>Skippy</answer></think>\n<answer>Jif</answer>", "Jif"),
        ("maybe <answer>Skippy</answer></think>\n<answer>Jif</answer>", "Jif"),
        ("<answer>Jif</answer></think>\n", "Jif"),
        ("<think>a</think>b<REASONING>c</reasoning><answer>Jif</answer>", "Jif"),
        ("The <think> tag is not used. <answer>Jif</answer>", "Jif"),
    ],
)
def test_the_last_complete_pair_is_the_answer(reply, answer):
    found = last_answer(reply)
    assert (found.text, found.found, found.reason) == (answer, True, "")


@pytest.mark.parametrize(
    ("reply", "answer", "reason"),
    [
        ("<answer>Jif", "Jif", "unclosed"),
        ("so\n<answer>\nJif\n", "Jif", "unclosed"),
        ("I think it is Jif", "I think it is Jif", "no_tag"),
        ("Jif\n\nThat is my final answer.\n \n", "That is my final answer.", "no_tag"),
        ("Jif</answer>", "Jif</answer>", "no_tag"),
        ("<think>it is <answer>Jif</answer></think>\nJif", "Jif", "no_tag"),
        ("<think>it is <answer>Jif</answer> or", "", "empty"),
        ("", "", "empty"),
        (" \n\t", "", "empty"),
    ],
)
def test_without_a_pair_the_reason_is_told(reply, answer, reason):
    found = last_answer(reply)
    assert (found.text, found.found, found.reason) == (answer, False, reason)


@pytest.mark.parametrize(
    "piece", ["<answer>", "</answer>", "<think>", "</think>", "`", "```", "< ", "<answer>`x", "<think><reasoning>"]
)
def test_a_hostile_reply_takes_no_longer_than_its_length(piece):
    began = time.perf_counter()
    last_answer("x" + piece * 20_000)
    assert time.perf_counter() - began < 20


def test_the_last_line():
    assert last_line("a\n b \n\n") == "b"
    assert last_line("\n") == ""


@pytest.mark.parametrize(
    ("reply", "spoken"),
    [
        ("All of it.\nTwo lines.", "All of it.\nTwo lines."),
        ("<think>hm</think>\nYes.", "\nYes."),
        ("hm</think>Yes.", "Yes."),
        ("<think>never ends", ""),
        ("The tag <think> is only named.", "The tag <think> is only named."),
    ],
)
def test_a_whole_reply_is_what_is_not_reasoning(reply, spoken):
    assert without_reasoning(reply) == spoken


@pytest.mark.parametrize(
    ("reply", "answer", "reason"),
    [(" Jif\n\nor Skippy ", "Jif\n\nor Skippy", ""), ("<think>no</think>Jif", "Jif", ""), ("<think>no", "", "empty"),
     ("<answer>Jif", "<answer>Jif", "")],
)  # fmt: skip
def test_the_whole_reply_is_all_but_its_reasoning(reply, answer, reason):
    whole = whole_reply(reply)
    assert (whole.text, whole.found, whole.reason) == (answer, True, reason)
