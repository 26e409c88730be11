"""The flags that stand for a configuration: what each of them says to it, and which configuration is meant."""

import click
import pytest
from click.testing import CliRunner
from skillopt_commands.without_yaml import CONFIGURATION, task_options


def received(*words, skill=True, several=True):
    """What a command with these flags is called with: its configuration, and its overrides by key."""
    got = {}

    def command(**given):
        got.update(given)

    made = task_options(skill=skill)(command)
    made = click.option("-o", "overrides", multiple=True)(made)
    made = click.option("--config", "config_option")(made)
    made = click.argument("configs" if several else "config", nargs=-1 if several else 1, required=False)(made)
    result = CliRunner().invoke(click.command()(made), words)
    if result.exit_code:
        return result
    found = [(key, node.written, node.place.label) for key, node in got["overrides"] if not isinstance(key, tuple)]
    return got["configs" if several else "config"], got["config_option"], found


def test_a_file_of_tasks_needs_no_configuration():
    assert received("--tasks", "tasks.csv") == (
        (CONFIGURATION,), None,
        [("env.split_mode", "ratio", "--tasks"), ("env.data_path", "tasks.csv", "--tasks")],
    )  # fmt: skip
    assert received("--tasks", "tasks.csv", several=False)[0] == CONFIGURATION


def test_a_configuration_that_is_named_is_meant():
    assert received("mine.yaml", "--tasks", "tasks.csv")[0] == ("mine.yaml",)
    assert received("mine.yaml", "--tasks", "tasks.csv", several=False)[0] == "mine.yaml"
    assert received("--config", "mine.yaml", "--tasks", "tasks.csv")[:2] == ((), "mine.yaml")
    assert received("--config", "mine.yaml", "--tasks", "tasks.csv", several=False)[:2] == (None, "mine.yaml")


def test_a_folder_that_is_split_already(tmp_path):
    (tmp_path / "train").mkdir()
    assert received("--tasks", str(tmp_path))[2] == [
        ("env.split_mode", "split_dir", "--tasks"), ("env.split_dir", str(tmp_path), "--tasks"),
    ]  # fmt: skip


def test_each_flag_sets_its_keys_and_stays_as_it_was_written():
    words = ("mine.yaml", "--skill", "1e5", "--scorer", "{name: numeric}", "--model", "no", "--backend", "openai")
    _, _, found = received(*words)
    assert [(key, text) for key, text, _ in found if key != "env.scorer"] == [
        ("env.skill_init", "1e5"), ("model.optimizer", "no"), ("model.target", "no"), ("model.backend", "openai"),
    ]  # fmt: skip
    assert [label for _, _, label in found] == ["--skill", "--scorer", "--model", "--model", "--backend"]


@pytest.mark.parametrize("flag", ["--tasks", "--skill", "--scorer", "--model", "--backend"])
def test_an_empty_value_is_a_variable_that_was_not_set(flag):
    result = received(flag, " ")
    assert result.exit_code == 2
    assert f"Invalid value for '{flag}': it is empty; give a value, or leave the flag out." in result.output


@pytest.mark.parametrize("several", [True, False])
def test_flags_without_tasks_ask_for_them(several):
    told = "CONFIG is missing. Add --tasks FILE for tasks of yours"
    result = received("--skill", "x.md", "--model", "m", several=several)
    assert result.exit_code == 2
    assert f"--skill and --model are given, but no tasks: {told}" in " ".join(result.output.split())
    result = received("--scorer", "exact", several=several)
    assert f"--scorer is given, but no tasks: {told}" in " ".join(result.output.split())
    assert received(several=several)[0] in ((), None), "a command says itself whether it needs a configuration"


def test_the_folder_of_an_agent_skill_is_its_file(tmp_path):
    (tmp_path / "SKILL.md").write_text("# A\n")
    found = received("mine.yaml", "--skill", str(tmp_path))[2]
    assert found == [("env.skill_init", str(tmp_path / "SKILL.md"), "--skill")]
    found = received("mine.yaml", "--skill", str(tmp_path.parent))[2]
    assert found == [("env.skill_init", str(tmp_path.parent), "--skill")]


def test_a_command_with_a_skill_of_its_own_has_no_second_one():
    assert "No such option" in received("--skill", "x", skill=False).output
