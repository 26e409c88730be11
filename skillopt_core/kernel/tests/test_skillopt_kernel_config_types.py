"""Types, limits, owners of keys, and what may stand unused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.discovery import installed
from skillopt_kernel_config_probes import Folder


@pytest.mark.parametrize(
    ("section", "line", "problem"),
    [
        ("train", "batch_size: 3.9", "expected a whole number, got the number 3.9"),
        ("train", "batch_size: 3.0", "expected a whole number, got the number 3.0"),
        ("train", "batch_size: true", "expected a whole number, got true"),
        ("train", "batch_size: '5'", "expected a whole number, got the text '5'; write it without quotes"),
        ("train", "batch_size: many", "expected a whole number, got the text 'many'"),
        ("train", "batch_size: [1]", "expected a whole number, got a list"),
        ("train", "batch_size: 0", "must be at least 1, not 0"),
        ("train", "num_epochs: 0", "must be at least 1, not 0"),
        ("gradient", "merge_batch_size: 1", "must be at least 2, not 1"),
        ("gradient", "failure_only: 1", "expected true or false, got the number 1"),
        ("train", "samples_per_task: 0", "must be at least 1, not 0"),
        ("optimizer", "max_skill_tokens: -1", "must be at least 0, not -1"),
        ("train", "patience: -1", "must be at least 0, not -1"),
        ("train", "patience: 1.5", "expected a whole number, got the number 1.5"),
        ("gradient", "failure_below: 0", "must be greater than 0 and at most 1, not 0.0"),
        ("gradient", "failure_below: 1.01", "must be greater than 0 and at most 1, not 1.01"),
        ("gradient", "failure_below: half", "expected a number, got the text 'half'"),
        ("env", "workers: 0", "must be at least 1, not 0"),
        ("env", "exec_timeout: 0", "must be greater than 0, not 0.0"),
        ("env", "exec_timeout: 12:30", "expected a number, got the text '12:30'"),
        ("env", "exec_timeout: .inf", "expected a finite number, got inf"),
        ("env", "split_mode: ration", "expected one of ratio, split_dir, got the text 'ration'; did you mean 'ratio'?"),
        ("env", "share: 1.5", "must be from 0 to 1, not 1.5"),
        ("env", "share: '0.5'", "expected a number, got the text '0.5'; write it without quotes"),
        ("env", "tags: a", "expected a list, got the text 'a'; write [a, b]"),
        ("env", "table: [a]", "expected a mapping, got a list"),
        ("env", "detail: 4", "expected one of auto, low, 3, got the number 4"),
        ("env", "switch: 1", "expected true or false, got the number 1"),
        ("env", "words: {a: 1}", "expected a list, got a mapping; write [a, b]"),
        ("env", "workrs: 3", "is no key of the environment probe_env; did you mean 'workers'?"),
        ("env", "batch_size: 3", "is no key of the environment probe_env; it belongs in the section `train`"),
        ("model", "reasoning_effort: huge", 'expected one of "", low, medium, high, xhigh, max, got the text \'huge\''),
        ("evaluation", "gate_weight: 2", "must be from 0 to 1, not 2.0"),
        ("optimizer", "lr_control_mode: slow", "expected one of fixed, autonomous, none, got the text 'slow'"),
        ("budget", "usd: 0", "must be greater than 0, not 0.0"),
        ("budget", "calls: 1.5", "expected a whole number, got the number 1.5"),
        ("budget", "wall_minutes: -1", "must be greater than 0, not -1.0"),
        ("budget", "reserve_final: 2", "must be from 0 to 1, not 2.0"),
        ("budget", "roles: 5", "expected a mapping, got the number 5"),
        ("budget", "usdd: 5", "is no key; did you mean 'usd'?"),
        ("model", "prices: 2", "expected a mapping, got the number 2"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error_with_its_place(folder: Folder, section: str, line: str, problem: str) -> None:
    key = line.partition(":")[0]
    assert folder.problems(f"{section}:\n  {line}\n") == (f"run.yaml:3:3: {section}.{key}: {problem}",)


def test_a_wrong_item_is_named_with_its_own_place(folder: Folder) -> None:
    problems = folder.problems("env:\n  table:\n    a: 1\n    b: x\n  tags: [a, {b: 1}]\n")
    assert problems == (
        "run.yaml:5:5: env.table[b]: expected a whole number, got the text 'x'",
        "run.yaml:6:13: env.tags[1]: expected text, got a mapping",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("budget: {roles: {target: {calls: 0}}}", "2:27: budget.roles.target.calls: must be at least 1, not 0"),
        ("budget: {roles: {targt: {calls: 3}}}", "2:18: budget.roles.targt: is no key; did you mean 'target'?"),
        ("budget: {roles: {judge: {a: 3}}}", "2:26: budget.roles.judge.a: is no key; there are usd, tokens, calls"),
        ("budget: {assume_per_call: {usd: -1}}", "2:28: budget.assume_per_call.usd: must be at least 0, not -1.0"),
        ("model: {prices: {gpt-x: {input: 1}}}", "2:18: model.prices[gpt-x]: lacks output"),
        ("model: {prices: {gpt-x: 1}}", "2:18: model.prices[gpt-x]: expected a mapping, got the number 1"),
        ("model: {prices: {a: {input: 1, output: -2}}}", "2:32: model.prices[a].output: must be at least 0, not -2.0"),
    ],
)  # fmt: skip
def test_a_wrong_value_deep_in_a_section_is_named_with_its_own_place(folder: Folder, text: str, problem: str) -> None:
    assert folder.problems(f"{text}\n") == (f"run.yaml:{problem}",)


def test_the_budget_and_prices_are_read_merged_and_shown(folder: Folder) -> None:
    folder.write("base.yaml", "_base_: probes\nbudget: {calls: 9, roles: {target: {calls: 5, usd: null}}}\n")
    folder.write("run.yaml", "_base_: base.yaml\nmodel: {prices: {a/b.c: {input: 1, output: 2, cached_input: ''}}}\n")
    config = load_config("run.yaml", ["budget.roles.target.usd=2", "budget.calls="], environ={})
    assert (config.budget.calls, config.budget.roles.target.calls, config.budget.roles.target.usd) == (None, 5, 2.0)
    assert config.budget.roles.judge.calls is None
    assert config.model.prices["a/b.c"].output == 2.0 and config.model.prices["a/b.c"].cached_input is None
    shown = config.as_dict()
    assert shown["budget"]["roles"]["target"] == {"usd": 2.0, "tokens": None, "calls": 5}
    again = load_config(shown, environ={})
    assert (again.budget, again.model.prices) == (config.budget, config.model.prices)
    assert "budget" not in config.fingerprint() and "prices" not in config.fingerprint()["model"]


def test_all_problems_are_told_at_once(folder: Folder) -> None:
    problems = folder.problems("train: {batch_size: x, seed: 1.5}\nenv: {share: 2, none: 1}\nhooks: {strict: 3}\n")
    assert [problem.partition(": ")[2].partition(":")[0] for problem in problems] == [
        "train.batch_size", "train.seed", "env.share", "env.none", "hooks.strict",
    ]  # fmt: skip


def test_a_whole_number_is_a_number_and_nothing_is_lost(folder: Folder) -> None:
    config = folder.load("env: {exec_timeout: 60, share: 1, switch: true, detail: 3}\n")
    assert isinstance(config.env.exec_timeout, float) and config.env.exec_timeout == 60.0
    assert config.driver("env").settings.switch is True and config.driver("env").settings.detail == 3


def test_asking_a_target_again_that_always_answers_alike_is_refused(folder: Folder) -> None:
    text = "train: {samples_per_task: 2}\nevaluation:\n  deterministic_target: true\n"
    assert folder.problems(text) == (
        "run.yaml:2:9: train.samples_per_task: is 2, but evaluation.deterministic_target says that the target always "
        "answers alike; attempt each task once, or set that to false",
    )
    assert folder.load(text.replace("true", "false")).train.samples_per_task == 2
    assert folder.problems(text.replace("2", "two")) == (
        "run.yaml:2:9: train.samples_per_task: expected a whole number, got the text 'two'",
    )


def test_case_o_f4_zero_is_a_value(folder: Folder) -> None:
    text = "env: {split_seed: 0, limit: 0, attempt_timeout: 0}\n"
    text += "optimizer: {slow_update_samples: 0, learning_rate: 0, floor: 0}\n"
    config = folder.load(text + "train: {seed: 0}\n")
    assert (config.env.split_seed, config.train.seed, config.optimizer.slow_update_samples) == (0, 0, 0)
    assert config.driver("scheduler").settings.learning_rate == 0
    assert config.origins["env.split_seed"] == "run.yaml:2:19"


def test_null_means_not_set(folder: Folder) -> None:
    config = folder.load("train: {seed: null, batch_size: ~}\nenv: {skill_init: '', switch: null, share: null}\n")
    assert (config.train.seed, config.train.batch_size, config.env.skill_init) == (42, 40, None)
    assert config.driver("env").settings.share == 0.5 and config.driver("env").settings.switch is None
    assert config.origins["train.seed"] == "default"


def test_what_two_settings_say_together_is_checked(folder: Folder) -> None:
    (problem,) = folder.problems("optimizer: {learning_rate: 1}\n")
    assert problem.endswith("optimizer.lr_scheduler: floor must not be above learning_rate")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("optimizer: {lr_control_mode: Manual}", "lr_control_mode", "fixed"),
        ("optimizer: {lr_control_mode: off}", "lr_control_mode", "none"),
        ("optimizer: {longitudinal_pair_policy: delta}", "longitudinal_pair_policy", "changed"),
        ("optimizer: {skill_update_mode: ' probe_update '}", "skill_update_mode", "probe_update"),
    ],
)
def test_aliases_stand_for_their_name(folder: Folder, text: str, key: str, value: str) -> None:
    assert getattr(folder.load(text + "\n").optimizer, key) == value


def test_the_gate_is_found_in_any_case(folder: Folder) -> None:
    assert folder.load("evaluation: {gate_metric: ' Probe_Gate '}\n").driver("gate").name == "probe_gate"


def test_a_driver_that_is_not_there_is_an_error_with_its_place(folder: Folder) -> None:
    problems = folder.problems("evaluation:\n  gate_metric: probe_gat\n")
    assert problems[0].startswith("run.yaml:3:3: evaluation.gate_metric: there is no gate named 'probe_gat'.")
    assert "Did you mean 'probe_gate'?" in problems[0]
    (problem,) = folder.problems("env:\n  name: alfworld\n")
    assert problem.startswith("run.yaml:3:3: env.name: ") and "pip install skillopt-env-alfworld" in problem


def test_autonomous_control_is_a_scheduler_whatever_lr_scheduler_says(folder: Folder) -> None:
    try:
        choice = folder.load("optimizer:\n  lr_control_mode: auto\n").driver("scheduler")
    except ConfigError as error:  # where the distribution of that scheduler is not installed
        (problem,) = error.problems
        assert problem.startswith("run.yaml:3:3: optimizer.lr_control_mode: there is no scheduler named 'autonomous'.")
        assert "pip install skillopt-scheduler-autonomous" in problem
    else:
        assert (choice.name, choice.where) == ("autonomous", "run.yaml:3:3: optimizer.lr_control_mode")


def test_without_an_environment_a_configuration_can_be_shown(folder: Folder) -> None:
    config = folder.load("env: {name: ''}\n")
    assert "env" not in config.drivers
    with pytest.raises(ConfigError, match=r"^env\.name is not set: name the environment"):
        config.driver("env")


def test_known_keys_of_drivers_that_are_not_in_use(folder: Folder) -> None:
    config = folder.load(
        "evaluation: {gate_mixed_weight: 0.5, use_semantic_density: false}\n"
        "optimizer: {meta_learning_rate: 2, min_learning_rate: 1}\n"
        "train: {steps_per_epoch: 3}\n"
        "model: {qwen_chat_timeout_seconds: 3, target_codex_exec_path: x, target_probe_tool_path: y}\n"
    )
    assert set(config.unused) == {
        "evaluation.gate_mixed_weight", "evaluation.use_semantic_density", "optimizer.meta_learning_rate",
        "optimizer.min_learning_rate", "train.steps_per_epoch", "model.qwen_chat_timeout_seconds",
        "model.target_codex_exec_path", "model.target_probe_tool_path",
    }  # fmt: skip
    assert config.unused["model.target_probe_tool_path"] == "the backend probe_tool is not in use"
    assert "run.yaml:4:9: train.steps_per_epoch: has no effect, since it is computed" in config.warnings[0]


def test_unused_keys_are_checked_where_their_driver_is_installed(folder: Folder) -> None:
    problems = folder.problems("model:\n  probe_tool_path: [1]\n  probe_tool_pth: x\n  probe_chat_verbos: true\n")
    assert problems == (
        "run.yaml:3:3: model.probe_tool_path: expected text, got a list",
        "run.yaml:4:3: model.probe_tool_pth: is no key; did you mean 'probe_tool_path'?",
        "run.yaml:5:3: model.probe_chat_verbos: is no key; did you mean 'probe_chat_verbose'?",
    )


def test_a_hook_plugin_is_switched_on_by_the_key_that_it_owns(folder: Folder) -> None:
    config = folder.load("evaluation: {use_probe: true, density: 0.5}\n")
    assert config.hooks.plugins == ("probe_hook",)
    assert config.plugins["probe_hook"].settings.density == 0.5
    assert config.hooks.settings["probe_hook"] == config.plugins["probe_hook"].settings
    assert not config.unused
    off = folder.load("evaluation: {use_probe: false, density: 0.5}\n")
    assert off.hooks.plugins == () and set(off.unused) == {"evaluation.use_probe", "evaluation.density"}
    assert config.origins["hooks.plugins"] == "default, run.yaml:2:14: evaluation.use_probe"
    assert config.origins["hooks.settings"] == "default, run.yaml:2:31: evaluation.density"
    assert config.origins["hooks.settings.probe_hook.density"] == "run.yaml:2:40"


@pytest.mark.skipif(
    any(plugin.name == "semantic_density" for plugin in installed("hook")), reason="the distribution is installed here"
)
def test_the_switch_of_a_hook_plugin_that_is_not_installed_names_its_distribution(folder: Folder) -> None:
    (problem,) = folder.problems("evaluation:\n  use_semantic_density: true\n  semantic_density_weight: 0.1\n")
    assert problem.startswith("run.yaml:3:3: evaluation.use_semantic_density: ")
    assert "pip install skillopt-hook-semantic-density" in problem


def test_a_hook_plugins_keys_are_checked_under_the_name_that_they_are_written_with(folder: Folder) -> None:
    switch = "run.yaml:3:3: evaluation.use_probe: "
    weight = "run.yaml:4:3: evaluation.density: must be from 0 to 1, not 7.0"
    text = "evaluation:\n  use_probe: %s\n  density: 7\n"
    assert folder.problems(text % "true") == (weight,)
    assert folder.problems(text % "false") == (weight,)  # not in use, but installed
    assert folder.problems(text % "1") == (f"{switch}expected true or false, got the number 1", weight)
    named = text % "false" + "hooks: {plugins: [probe_hook]}\n"
    contradiction = f"{switch}is false, but hooks.plugins names probe_hook; delete one of the two"
    assert folder.problems(named) == (contradiction, weight)
    assert folder.load("evaluation: {use_probe: null}\nhooks: {plugins: [probe_hook]}\n").plugins["probe_hook"]
    (problem,) = folder.problems("evaluation: {semantic_density_wieght: 1}\n")
    assert problem.endswith("is no key; did you mean 'semantic_density_weight'?")


def test_the_nearer_of_two_keys_for_one_setting_wins(folder: Folder) -> None:
    both = "evaluation: {use_probe: true, density: 0.5}\nhooks: {settings: {probe_hook: {density: 0.25}}}\n"
    config = folder.load(both)
    assert config.plugins["probe_hook"].settings.density == 0.25
    assert set(config.unused) == {"evaluation.density"}
    config = folder.load(both, "evaluation.density=0.75")
    assert config.plugins["probe_hook"].settings.density == 0.75 and not config.unused
    assert config.origins["hooks.settings.probe_hook.density"] == "-o"


def test_a_disabled_hook_plugin_need_not_be_installed(folder: Folder) -> None:
    config = folder.load(
        "hooks: {plugins: [absent, probe_hook], settings: {absent: {a: 1}}}\n", "hooks.disable=[absent]"
    )
    assert set(config.plugins) == {"probe_hook"} and config.hooks.disable == ("absent",)
    config = folder.load("evaluation: {use_semantic_density: true}\n", "hooks.disable=[semantic_density]")
    assert config.plugins == {} and config.hooks.plugins == ("semantic_density",)
    (problem,) = folder.problems("hooks: {plugins: [absent]}\n")
    assert problem.startswith("run.yaml:2:9: hooks.plugins: there is no hook plugin named 'absent'")


def test_settings_of_a_hook_plugin_are_checked_in_their_place(folder: Folder) -> None:
    text = "hooks:\n  plugins: [probe_hook, 'acme.hooks:Critic']\n  settings:\n    probe_hook: {density: %s}\n"
    assert folder.load(text % "0.2").plugins["probe_hook"].settings.density == 0.2
    assert folder.problems(text % "2") == (
        "run.yaml:5:18: hooks.settings.probe_hook.density: must be from 0 to 1, not 2.0",
    )
    assert folder.problems(text % "1, densty: 1") == (
        "run.yaml:5:30: hooks.settings.probe_hook.densty: is no key; did you mean 'density'?",
    )


def test_the_fingerprint_covers_what_can_change_a_result(folder: Folder) -> None:
    folder.write("p.md", "one")
    base = "env: {tags: [a], folders: [.]}\nprompts: {analyst_failure: p.md}\n"
    first = folder.load(base).fingerprint()
    for free in ("env.workers=3", "env.exec_timeout=7", "env.out_root=x", "gradient.analyst_workers=2",
                 "env.split_dir=.",
                 "model.probe_chat_base_url=http://other", "model.probe_chat_api_key=k-1", "execution.executor=threads",
                 "model.probe_chat_timeout_seconds=1", "hooks.strict=true"):  # fmt: skip
        assert folder.load(base, free).fingerprint() == first, free
    for decisive in ("train.seed=1", "train.num_epochs=5", "env.tags=[b]", "env.max_turns=2", "model.target=other",
                     "model.probe_chat_temperature=0.5", "model.judge=other", "optimizer.learning_rate=3",
                     "evaluation.gate_weight=0.1", "env.split_seed=0", "hooks.disable=[meta_skill]"):  # fmt: skip
        assert folder.load(base, decisive).fingerprint() != first, decisive
    folder.write("p.md", "two")
    assert folder.load(base).fingerprint() != first


def test_what_does_not_count_in_a_comparison_is_no_part_of_what_is_kept(
    folder: Folder, install: Callable[..., Path], manifest_of: Callable[..., str]
) -> None:
    install(
        "acme-pick 1.0",
        {"skillopt.envs pick": "acme_pick:plugin"},
        {
            "acme_pick.py": manifest_of("env", "pick", settings="acme_pick_settings:Settings"),
            "acme_pick_settings.py": (
                "from attrs import field, frozen\n@frozen\nclass Pick:\n    name: str = ''\n"
                "    where: str = field(default='', eq=False)\n    @classmethod\n"
                "    def from_node(cls, given, nested, problem):\n"
                "        return cls(given.node.written, str(given.node.where))\n"
                "@frozen\nclass Settings:\n    pick: Pick = Pick()\n"
            ),
        },
    )
    first, moved = folder.load("env: {name: pick, pick: a}\n"), folder.load("env:\n  name: pick\n  pick: a\n")
    places = [config.driver("env").settings.pick.where for config in (first, moved)]
    assert [place.partition(":")[2] for place in places] == ["2:19", "4:3"]
    assert first.as_dict()["env"]["pick"] == {"name": "a"}
    assert first.fingerprint() == moved.fingerprint()


def test_two_runs_in_one_process_know_nothing_of_each_other(folder: Folder) -> None:
    folder.load("", "model.probe_chat_base_url=http://one", "train.seed=1")
    second = folder.load("")
    assert second.backends["target"].settings.base_url == "http://localhost" and second.train.seed == 42
    assert load_config("run.yaml", environ={}).origins == second.origins


def test_settings_that_cannot_be_read_are_the_plugins_fault(
    folder: Folder, install: Callable[..., Path], manifest_of: Callable[..., str]
) -> None:
    install(
        "acme-odd 1.0",
        {"skillopt.gates odd": "acme_odd:plugin", "skillopt.gates dated": "acme_dated:plugin"},
        {
            "acme_odd.py": manifest_of("gate", "odd", settings="acme_odd_settings:Settings"),
            "acme_odd_settings.py": "from attrs import frozen\n@frozen\nclass Settings:\n    a: 'Nowhere' = None\n",
            "acme_dated.py": manifest_of("gate", "dated", settings="acme_dated_settings:Settings"),
            "acme_dated_settings.py": (
                "from datetime import date\nfrom attrs import frozen\n@frozen\nclass Settings:\n    day: date = None\n"
            ),
        },
    )
    (problem,) = folder.problems("evaluation:\n  gate_metric: odd\n")
    assert problem.startswith("run.yaml:3:3: evaluation.gate_metric: the gate 'odd' of acme-odd 1.0 is installed but")
    (problem,) = folder.problems("evaluation:\n  gate_metric: dated\n  day: 2026-11-29\n")
    assert problem.startswith("run.yaml:4:3: evaluation.day: ") and "date" in problem


def test_a_class_may_say_itself_how_it_is_written():
    """What it reads within keeps its place, and so does what it refuses."""
    import attrs
    from skillopt_kernel.config.structure import Structurer, fields_of
    from skillopt_kernel.config.tree import Node, Place

    @attrs.frozen
    class Size:
        metres: float = attrs.field(default=1.0)

    @attrs.frozen
    class Pair:
        name: str
        size: Size

        @classmethod
        def from_node(cls, given, nested, problem):
            if isinstance(given.node.value, str):
                return cls(given.node.value, Size())
            if not isinstance(given.node.value, dict):
                raise problem(given, "expected a name or a mapping")
            return cls("named", nested(given, Size))

    settings = attrs.make_class("Settings", {"pair": attrs.field(type=Pair), "pairs": attrs.field(type=list[Pair])})
    field, several = fields_of(settings)["pair"], fields_of(settings)["pairs"]
    file, line = Place("a.yaml", 1, 1), Place("a.yaml", 2, 3)
    structurer = Structurer()
    assert structurer.value(Node("box", file), field, "env.pair") == Pair("box", Size())
    assert structurer.value(Node({"metres": Node(2, line)}, file), field, "env.pair") == Pair("named", Size(2.0))
    assert not structurer.problems
    structurer.value(Node({"metres": Node("2", line)}, file), field, "env.pair")
    structurer.value(Node(7, file), field, "env.pair")
    structurer.value(Node((Node("box", file), Node(7, line)), file), several, "env.pairs")
    assert structurer.problems == [
        "a.yaml:2:3: env.pair.metres: expected a number, got the text '2'; write it without quotes",
        "a.yaml:1:1: env.pair: expected a name or a mapping",
        "a.yaml:2:3: env.pairs[1]: expected a name or a mapping",
    ]
