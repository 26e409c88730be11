"""Files, bases, positions, overrides and paths of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from skillopt_kernel.config import load_config
from skillopt_kernel.config.load import flag
from skillopt_kernel.config.schema import SECTIONS
from skillopt_kernel.errors import ConfigError
from skillopt_kernel_config_probes import DRIVERS, Folder


def test_default_yaml_says_what_the_schema_says() -> None:
    import attrs
    import skillopt_kernel

    text = (Path(skillopt_kernel.__file__).parent / "default.yaml").read_text(encoding="utf-8")
    shipped = yaml.safe_load(text.replace("split_ratio: 2:1:7", "split_ratio: '2:1:7'"))
    drivers_keys = {"learning_rate": 4, "min_learning_rate": 2}
    for section, settings in SECTIONS.items():
        defaults = {
            key: list(value) if isinstance(value, tuple) else value for key, value in attrs.asdict(settings()).items()
        }
        expected = defaults | (drivers_keys if section == "optimizer" else {})
        written = {key: value or None if expected[key] is None else value for key, value in shipped[section].items()}
        assert written == expected, section
    assert set(shipped) == {*SECTIONS, "prompts"}


def test_nearer_layers_win_and_every_value_says_where_it_came_from(folder: Folder) -> None:
    folder.write("base.yaml", "_base_: probes\ntrain:\n  batch_size: 8\n  seed: 1\ngradient: {minibatch_size: 2}\n")
    folder.write("run.yaml", "_base_: base.yaml\ntrain:\n  seed: 7\n  num_epochs: 3\n")
    config = load_config("run.yaml", ["train.num_epochs=2"], environ={})
    assert (config.train.num_epochs, config.train.seed, config.train.batch_size) == (2, 7, 8)
    assert config.train.accumulation == 1 and config.gradient.minibatch_size == 2
    origins = config.origins
    assert origins["train.num_epochs"] == "-o"
    assert origins["train.seed"] == "run.yaml:3:9"
    assert origins["train.batch_size"] == "base.yaml:3:15"
    assert origins["train.accumulation"] == "default"
    assert origins["env.name"] == "package:acme_probes/configs/probes.yaml:2:13"


def test_lists_are_replaced_and_mappings_are_merged(folder: Folder) -> None:
    folder.write("base.yaml", "_base_: probes\nenv: {tags: [a, b], table: {x: 1, y: 2}}\n")
    folder.write("run.yaml", "_base_: base.yaml\nenv: {tags: [c], table: {y: 3}}\n")
    settings = load_config("run.yaml", environ={}).driver("env").settings
    assert settings.tags == ["c"] and settings.table == {"x": 1, "y": 3}


def test_several_bases_later_over_earlier(folder: Folder) -> None:
    folder.write("a.yaml", "train: {batch_size: 5, seed: 5}\n")
    folder.write("b.yaml", "train: {batch_size: 6}\n")
    folder.write("run.yaml", "_base_: [probes, a.yaml, b.yaml]\n")
    train = load_config("run.yaml", environ={}).train
    assert (train.batch_size, train.seed) == (6, 5)


def test_a_base_is_looked_for_beside_the_file_then_in_the_working_directory(folder: Folder) -> None:
    folder.write("here.yaml", "_base_: probes\ntrain: {batch_size: 3}\n")
    folder.write("sub/run.yaml", "_base_: here.yaml\n")
    assert load_config("sub/run.yaml", environ={}).train.batch_size == 3
    folder.write("sub/here.yaml", "_base_: probes\ntrain: {batch_size: 4}\n")
    assert load_config("sub/run.yaml", environ={}).train.batch_size == 4
    folder.write("sub/run.yaml", "\n_base_: nowhere.yaml\n")
    with pytest.raises(ConfigError) as caught:
        load_config("sub/run.yaml")
    message = str(caught.value)
    assert message.startswith("sub/run.yaml:2:1: _base_: nowhere.yaml: there is no file ")
    assert str(folder.root / "sub" / "nowhere.yaml") in message and str(folder.root / "nowhere.yaml") in message


def test_bases_in_a_circle_are_named(folder: Folder) -> None:
    folder.write("a.yaml", "_base_: b.yaml\n")
    folder.write("b.yaml", "train: {}\n_base_: [probes, a.yaml]\n")
    with pytest.raises(ConfigError, match=r"^b\.yaml:2:18: _base_: .* circle: a\.yaml -> b\.yaml -> a\.yaml$"):
        load_config("a.yaml")


def test_one_base_may_be_reached_twice(folder: Folder) -> None:
    folder.write("root.yaml", "_base_: probes\ntrain: {seed: 3}\n")
    folder.write("a.yaml", "_base_: root.yaml\n")
    folder.write("b.yaml", "_base_: root.yaml\n")
    folder.write("run.yaml", "_base_: [a.yaml, b.yaml]\n")
    assert load_config("run.yaml", environ={}).train.seed == 3


def test_package_paths_and_packaged_names(folder: Folder) -> None:
    config = folder.load("env: {skill_init: 'package:acme_probes/data/start.md'}\n")
    assert config.env.skill_init is not None and config.env.skill_init.read_text() == "Answer briefly.\n"
    assert load_config("probes", environ={}).name == "probes"
    with pytest.raises(
        ConfigError, match=r"^probe: there is no file .*, and no configuration of that name\. Did you mean 'probes'"
    ):
        load_config("probe")
    for path, reason in (("package:acme_nothing/x.md", "no package"), ("package:acme_probes/x.md", "has no 'x.md'"),
                         ("package:acme_probes/../x.md", "must stay inside")):  # fmt: skip
        (problem,) = folder.problems(f"env:\n  skill_init: '{path}'\n")
        assert problem.startswith("run.yaml:3:3: env.skill_init: ") and reason in problem


def test_a_mapping_is_a_source(folder: Folder) -> None:
    source = {"_base_": "probes", "train": {"batch_size": 2}, "env": {"skill_init": None, "tags": ("a",)}}
    config = load_config(source, environ={})
    assert config.train.batch_size == 2 and config.path is None
    assert config.origins["train.batch_size"] == "the mapping given"
    with pytest.raises(ConfigError, match=r"the mapping given: train.batch_size: expected a whole number"):
        load_config({"_base_": "probes", "train": {"batch_size": "2"}})


def test_what_as_dict_says_can_be_loaded_again(folder: Folder) -> None:
    first = folder.load("env: {tags: [a], folders: [.]}\nmodel: {probe_chat_api_key: key-123456}\ntrain: {seed: 0}\n")
    again = load_config(first.as_dict(), environ={"PROBE_CHAT_API_KEY": "key-123456"})
    assert again.as_dict() == first.as_dict() and again.backends["target"].settings == first.backends["target"].settings
    assert again.fingerprint()["train"] == first.fingerprint()["train"]


# Files that cannot be read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("train:\n  seed: 1\n  seed: 2\n", "bad.yaml:3:3: the key 'seed' stands here and in line 2; delete"),
        ("train: {seed: 1\n", "bad.yaml:2:1: is not valid YAML: "),
        ("- a\n", "bad.yaml:1:1: a configuration is a mapping of sections such as `train:`"),
        ("train: 3\n", "bad.yaml:1:1: train: is a section, a mapping of keys"),
        ("trian: {}\n", "bad.yaml:1:1: trian: is no section; did you mean 'train'?"),
        ("\nbatchsize: 4\n", "bad.yaml:2:1: batchsize: is no section and no key; did you mean 'batch_size'?"),
        ("trian:\n", "bad.yaml:1:1: trian: is no section and no key; did you mean 'train'?"),
        ("\nbatch_size: x\n", "bad.yaml:2:1: batch_size: expected a whole number, got the text 'x'"),
        ("edit_budgt: 4\n", "bad.yaml:1:1: edit_budgt: is no section and no key; did you mean 'edit_budget'?"),
        ("max_turns: 1\n", "bad.yaml:1:1: max_turns: is no section and no key; if it is an environment's, name that"),
        ("env: {max_turns: 1}\n", "bad.yaml:1:7: env.max_turns: is no key; if it is an environment's, name that first"),
        ("train:\n  seed: !!python/name:os.system x\n", "bad.yaml:2:9: the tag !!python/name:os.system is not"),
        ("train: &a\n  seed: *a\n", "bad.yaml: is nested too deeply, or an alias stands in its own value"),
        ("? [a]\n: 1\n", "bad.yaml:1:3: a key must be a word"),
        ("train:\n  seed: !!int many\n", "bad.yaml:2:9: 'many' cannot be read"),
        ("_base_: 3\n", "bad.yaml:1:1: _base_: expected a path, a packaged name or a list of them"),
        ("a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
         "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
         "e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n", "bad.yaml:1:"),
        ("train: " + "[" * 5000, "bad.yaml:"),
        ("train: {}\n---\ntrain: {}\n", "bad.yaml:2:1: is not valid YAML: but found another document"),
    ],
)  # fmt: skip
def test_a_bad_file_is_an_error_with_its_place(folder: Folder, text: str, problem: str) -> None:
    folder.write("bad.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load_config("bad.yaml")
    assert [each for each in caught.value.problems if each.startswith(problem)]


def test_case_o_w4_utf8_whatever_the_locale(folder: Folder) -> None:
    text = DRIVERS + "# 名前: 経費\nprompts: {}\n"
    for beginning in (b"", b"\xef\xbb\xbf"):
        folder.write("name.yaml", beginning + text.replace("probe_env}", "probe_env, tags: [経費]}").encode("utf-8"))
        assert load_config("name.yaml", environ={}).driver("env").settings.tags == ["経費"]
    folder.write("name.yaml", b"train: {}\n# " + "経費".encode("cp932"))
    with pytest.raises(ConfigError, match=r"^name\.yaml: is not UTF-8 \(byte offset 12\); save it as UTF-8$"):
        load_config("name.yaml")
    folder.write("name.yaml", b"\xef\xbb\xbftrain: {}\n\xff")
    with pytest.raises(ConfigError, match="byte offset 13"):
        load_config("name.yaml")


def test_anchors_and_aliases(folder: Folder) -> None:
    config = folder.load("env: {tags: &t [a, b], words: *t}\n")
    assert config.driver("env").settings.tags == ["a", "b"] and config.driver("env").settings.words == ("a", "b")


def test_an_empty_file_and_empty_sections_are_fine(folder: Folder) -> None:
    assert folder.load("train:\n").train.batch_size == 40


# Overrides -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("env.share=1e-3", 0.001), ("env.share=1", 1.0), ("env.share=null", 0.5), ("env.switch=true", True),
        ("env.switch=No", False), ("env.switch=null", None), ("env.tags=[no, 1e10, b]", ["no", "1e10", "b"]),
        ("env.table={a: 1}", {"a": 1}), ("env.words=no", "no"), ("env.words='no'", "no"), ("env.words=1e10", "1e10"),
        ("env.words=[a, b]", ("a", "b")), ("env.words=", ""), ("env.words=a: b #c", "a: b #c"), ("env.detail=3", 3),
        ("env.words=C:\\data", "C:\\data"), ("env.words=[half", "[half"),
    ],
)  # fmt: skip
def test_overrides_are_read_by_the_declared_type(folder: Folder, override: str, expected: object) -> None:
    settings = folder.load("", override).driver("env").settings
    assert getattr(settings, override.partition("=")[0].rpartition(".")[2]) == expected


def test_a_text_key_keeps_its_text_in_overrides_and_files(folder: Folder) -> None:
    config = folder.load("model: {target: no, optimizer: 1e10}\n")
    assert (config.backends["target"].model, config.backends["optimizer"].model) == ("no", "1e10")
    config = folder.load("", "model.target=1e10", "model.optimizer=null")
    assert (config.backends["target"].model, config.backends["optimizer"].model) == ("1e10", "probe-model")
    assert folder.load("env: {split_ratio: 8:2}\n").env.split_ratio == "8:2"


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("train.batchsize=10", "-o: train.batchsize: is no key; did you mean 'batch_size'?"),  # case O-F3
        ("trian.seed=1", "-o: trian: is no section; did you mean 'train'?"),
        ("batchsize=10", "-o: batchsize: is no section and no key; did you mean 'batch_size'?"),
        ("train.seed", "-o train.seed: expected section.key=value, such as train.batch_size=8"),
        ("=3", "-o : expected section.key=value"),
        ("train.seed.x=3", "-o: train.seed: expected a whole number, got a mapping"),
        ("train.seed=", "-o: train.seed: expected a whole number, got the text ''"),
        ("train.batch_size=0", "-o: train.batch_size: must be at least 1, not 0"),  # case O-F4
        ("train=3", "-o: train: is a section, a mapping of keys"),
        ("gate_weight=1", "-o: gate_weight: is no section and no key; did you mean"),
    ],
)
def test_a_bad_override_is_an_error(folder: Folder, override: str, problem: str) -> None:
    assert folder.problems("train: {seed: 1}\n", override)[0].startswith(problem)


def test_a_bare_key_finds_its_one_section(folder: Folder) -> None:
    config = folder.load(
        "", "batch_size=4", "split_dir=.", "edit_budget=6", "learning_rate=7", "probe_chat_verbose=true"
    )
    assert config.train.batch_size == 4 and config.env.split_dir == folder.root
    assert config.driver("scheduler").settings.learning_rate == 7
    assert config.backends["target"].settings.verbose is True


def test_a_flag_of_its_own_is_an_override_that_messages_name(folder: Folder) -> None:
    folder.write("run.yaml", "_base_: probes\n")
    given = ["train.seed=4", flag("--seed", "train.seed", "5"), flag("--target_model", "model.target", "no")]
    config = load_config("run.yaml", given, environ={})
    assert config.train.seed == 5 and config.backends["target"].model == "no"
    assert config.origins["train.seed"] == "--seed"
    with pytest.raises(ConfigError, match=r"^--seed: train\.seed: expected a whole number, got the text 'many'$"):
        load_config("run.yaml", [flag("--seed", "train.seed", "many")])
    with pytest.raises(ConfigError, match=r"^--max_turn: env\.max_turn: is no key of the environment probe_env; did"):
        load_config("run.yaml", [flag("--max_turn", "env.max_turn", "3")])


def test_a_plugin_overrides_as_the_command_line_does(folder: Folder) -> None:
    config = folder.load("train: {batch_size: 4}\n", "train.seed=2")
    changed = config.with_overrides({"train.batch_size": 20, "env": {"max_turns": 3}}, origin="plugin critic")
    assert (changed.train.batch_size, changed.train.seed, config.train.batch_size) == (20, 2, 4)
    assert changed.driver("env").settings.max_turns == 3
    assert changed.origins["train.batch_size"] == "plugin critic"
    with pytest.raises(
        ConfigError, match=r"plugin critic: train.batch_size: expected a whole number, got the number 2.5"
    ):
        config.with_overrides({"train.batch_size": 2.5}, origin="plugin critic")


# Paths -----------------------------------------------------------------------------------------------------


def test_paths_are_looked_for_beside_the_file_then_in_the_working_directory(folder: Folder) -> None:
    folder.write("sub/prompt.md", "x")
    folder.write("skill.md", "y")
    folder.write("sub/run.yaml", "_base_: probes\nprompts: {analyst_failure: prompt.md}\nenv: {skill_init: skill.md}\n")
    config = load_config("sub/run.yaml", environ={})
    assert config.prompts == {"analyst_failure": folder.root / "sub" / "prompt.md"}
    assert config.env.skill_init == folder.root / "skill.md"
    assert config.as_dict()["env"]["skill_init"] == str(folder.root / "skill.md")


def test_a_missing_path_names_both_places(folder: Folder) -> None:
    folder.write(
        "sub/run.yaml", "_base_: probes\nenv:\n  skill_init: no.md\n  folders: [., none]\nprompts: {a: p.md}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config("sub/run.yaml")
    skill, folders, prompt = caught.value.problems
    assert skill == (
        f"sub/run.yaml:3:3: env.skill_init: 'no.md' is not at {folder.root}/sub/no.md nor at {folder.root}/no.md"
    )
    assert folders.startswith("sub/run.yaml:4:16: env.folders[1]: 'none' is not at ")
    assert prompt.startswith("sub/run.yaml:5:11: prompts.a: 'p.md' is not at ")


def test_data_that_is_not_there_yet_is_a_warning(folder: Folder) -> None:
    config = folder.load("env: {split_dir: data, split_output_dir: out}\n")
    assert config.env.split_dir == folder.root / "data" and config.env.split_output_dir == folder.root / "out"
    assert config.warnings == (f"run.yaml:2:7: env.split_dir: 'data' is not at {folder.root}/data",)
