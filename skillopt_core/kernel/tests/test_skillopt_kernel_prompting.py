"""Prompts: where they are found, what they may name, and what is said when one cannot be used."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.prompting import make_prompt, resolve_prompts

OF_THE_KERNEL = {"slow_update", "meta_skill"}


class Mode:
    name = "own"

    def prompts(self) -> Mapping[str, str]:
        return {"analyst_failure": "mode {{budget}}", "ranking": "rank {{budget}}", "merge_final": "m {{level}}"}


class Environment:
    def prompts(self) -> Mapping[str, str]:
        return {"analyst_failure": "environment {{schema}}", "ranking": "environment", "of_another_mode": "{{x}}"}


def test_the_first_found_wins(tmp_path: Path) -> None:
    mine = tmp_path / "mine.md"
    mine.write_text("file {{ budget }}", encoding="utf-8")
    found = resolve_prompts({"ranking": mine}, Environment(), Mode())
    assert {name: prompt.text for name, prompt in found.items() if name not in OF_THE_KERNEL} == {
        "analyst_failure": "environment {{schema}}",
        "ranking": "file {{ budget }}",
        "merge_final": "m {{level}}",
    }
    assert found["ranking"].source == str(mine)
    assert "environment" in found["analyst_failure"].source
    assert "update mode own" in found["merge_final"].source
    assert resolve_prompts({}, object(), Mode())["ranking"].text == "rank {{budget}}"


def test_filling_replaces_in_one_pass_and_ignores_what_is_not_used() -> None:
    prompt = make_prompt("analyst_failure", "{{budget}} {{ schema }} {x} {{budget}}", "here")
    assert prompt.fill(budget="{{schema}}", schema="\\1", level="9") == "{{schema}} \\1 {x} {{schema}}"
    with pytest.raises(KeyError):
        prompt.fill(budget="4")


def test_the_hash_tells_texts_apart() -> None:
    one, two = make_prompt("ranking", "a", "x"), make_prompt("ranking", "b", "x")
    assert one.hash != two.hash
    assert one.hash == make_prompt("ranking", "a", "elsewhere").hash == "ca978112ca1bbdca"


def test_an_unknown_variable_names_file_line_and_known_names(tmp_path: Path) -> None:
    mine = tmp_path / "mine.md"
    mine.write_text("first\nsecond {{bugdet}}\n{{level}}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        resolve_prompts({"analyst_failure": mine}, None, Mode())
    first, second = caught.value.problems
    assert f"{mine}:2:" in first
    assert "{{bugdet}}" in first
    assert "{{budget}}, {{payload}}, {{schema}}" in first
    assert f"{mine}:3:" in second


def test_an_unknown_prompt_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"prompts\.rankin: .*Did you mean 'ranking'"):
        resolve_prompts({"rankin": tmp_path}, None, Mode())


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"\xff\xfe", "not UTF-8"), (b" \n", "is empty")],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    mine = tmp_path / "mine.md"
    if content is not None:
        mine.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        resolve_prompts({"ranking": mine}, None, Mode())
    assert str(mine) in str(caught.value)


def test_prompts_of_the_kernels_own_stages_join_and_give_way_to_others(tmp_path: Path) -> None:
    class Advised(Mode):
        def prompts(self) -> Mapping[str, str]:
            return {**super().prompts(), "meta_skill": "the mode's"}

    mine = tmp_path / "mine.md"
    mine.write_text("Guide.", encoding="utf-8")
    found = resolve_prompts({"slow_update": mine}, None, Advised())
    assert (found["slow_update"].text, found["meta_skill"].text) == ("Guide.", "the mode's")
    found = resolve_prompts({}, None, Mode())
    for name, key in (("slow_update", "slow_update_content"), ("meta_skill", "meta_skill_content")):
        assert found[name].source == f"the prompt {name} of the kernel's stage {name}"
        text = found[name].fill()
        assert "one JSON object" in text and f'"{key}"' in text and "{{" not in text
    mine.write_text("Guide within {{budget}}.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.md:1: .*can only use plain text"):
        resolve_prompts({"slow_update": mine}, None, Mode())
