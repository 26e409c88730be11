"""What a request says, and a reply that the kernel takes for an optimizer's."""

import json

import pytest
from skillopt_testkit.wording import proposal, text_of


@pytest.mark.parametrize(
    ("content", "text"),
    [("a", "a"), (None, ""), ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}], "a\n\nb")],
)
def test_the_text_of_a_message(content, text):
    assert text_of({"role": "user", "content": content}) == text


def test_a_proposal_appends_each_rule_as_analysts_and_merges_write_it():
    reply = json.loads(proposal("One.", "Two."))
    assert [edit["content"] for edit in reply["edits"]] == ["- One.", "- Two."]
    assert reply["patch"]["edits"] == reply["edits"]
    assert json.loads(proposal())["edits"] == []
