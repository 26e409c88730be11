"""Roles, backends' settings by role, the environment, credentials; and `skillopt config`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from skillopt_commands.config import config as command
from skillopt_kernel.config import load_config
from skillopt_kernel.config.known import TARGET_ONLY
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.models.roles import ROLES, plan_roles
from skillopt_kernel.plugins.discovery import installed
from skillopt_kernel.plugins.known import known_names
from skillopt_kernel_config_probes import Folder

TABLE = {
    ("openai_chat", "openai_chat"): ("", "azure", "azure-openai", "azure_openai", "openai", "openai_chat"),
    ("claude_chat", "claude_chat"): ("claude", " Claude ", "anthropic", "claude_chat"),
    ("copilot_chat", "copilot_chat"): ("copilot", "copilot_cli", "github_copilot", "copilot_chat"),
    ("openai_compatible", "openai_compatible"): (
        "openai_compatible", "openai_compatible_chat", "openai-compatible", "compat",
    ),
    ("openai_chat", "codex_exec"): ("codex", "codex_exec"),
    ("openai_chat", "claude_code_exec"): ("claude_code_exec",),
    ("openai_chat", "cursor_exec"): ("cursor", "cursor_agent", "cursor_exec"),
    ("openai_chat", "copilot_exec"): ("copilot_exec",),
    ("openai_chat", "qwen_chat"): ("qwen", "qwen_chat"),
    ("openai_chat", "minimax_chat"): ("minimax", "MiniMax_Chat"),
    ("simulated", "simulated"): ("simulated",),
    ("handoff", "handoff"): ("handoff",),
    ("acme_chat", "acme_chat"): ("acme_chat",),
}  # fmt: skip
"""Optimizer and target -> the labels that set them so: the ten backends under all their names, and others."""


@pytest.mark.parametrize(
    ("label", "optimizer", "target"), [(label, *roles) for roles, labels in TABLE.items() for label in labels]
)
def test_a_label_names_the_backends_of_the_roles(label: str, optimizer: str, target: str) -> None:
    plan = plan_roles(label)
    assert plan.backends == {"optimizer": optimizer, "target": target, "judge": optimizer}
    assert plan.said_by == dict.fromkeys(ROLES, "label")


@pytest.mark.parametrize(
    ("label", "optimizer", "target", "judge", "explicit", "expected", "said_by"),
    [
        # A role's own word counts, also when it is openai_chat, which earlier versions took for "not set".
        ("claude", "openai_chat", None, None, ROLES, "openai_chat claude_chat openai_chat",
         "optimizer label optimizer"),
        ("claude", None, "openai_chat", None, ROLES, "claude_chat openai_chat claude_chat", "label target label"),
        ("claude", "openai", "qwen", "cursor", ROLES, "openai_chat qwen_chat cursor_exec", "optimizer target judge"),
        ("qwen", "qwen", None, None, ROLES, "qwen_chat qwen_chat qwen_chat", "optimizer label optimizer"),
        ("codex", " Codex ", None, None, ROLES, "codex_exec codex_exec codex_exec", "optimizer label optimizer"),
        ("", "compat", None, None, ROLES, "openai_compatible openai_chat openai_compatible",
         "optimizer label optimizer"),
        ("openai_chat", None, "claude_code_exec", None, ROLES, "openai_chat claude_code_exec openai_chat",
         "label target label"),
        ("claude", "", " ", "", ROLES, "claude_chat claude_chat claude_chat", "label label label"),
        # What is not explicit gives way to the label, whatever it is.
        ("claude", "openai_chat", "openai_chat", None, (), "claude_chat claude_chat claude_chat", "label label label"),
        ("cursor", "openai_chat", "qwen", None, ("optimizer",), "openai_chat cursor_exec openai_chat",
         "optimizer label optimizer"),
        ("cursor", "claude", "qwen", "qwen", ("judge",), "openai_chat cursor_exec qwen_chat", "label label judge"),
    ],
)  # fmt: skip
def test_a_role_that_names_its_backend_explicitly_has_it(
    label: str, optimizer: str | None, target: str | None, judge: str | None, explicit: tuple[str, ...],
    expected: str, said_by: str,
) -> None:  # fmt: skip
    plan = plan_roles(label, optimizer, target, judge, explicit)
    assert plan.backends == dict(zip(ROLES, expected.split(), strict=True))
    assert plan.said_by == dict(zip(ROLES, said_by.split(), strict=True))


def _backends(config: object) -> tuple[str, ...]:
    return tuple(config.backends[role].name for role in ("optimizer", "target", "judge"))  # type: ignore[attr-defined]


def test_case_o_f1_a_label_nearer_to_the_user_beats_the_roles_of_a_base(folder: Folder) -> None:
    folder.write("base.yaml", "_base_: probes\nmodel: {optimizer_backend: probe_chat, target_backend: probe_chat}\n")
    folder.write("run.yaml", "_base_: base.yaml\n")
    assert _backends(load_config("run.yaml", environ={})) == ("probe_chat",) * 3
    both = load_config("run.yaml", ["model.backend=probe_tool"], environ={})
    assert _backends(both) == ("probe_tool",) * 3
    assert both.origins["model.target_backend"] == "-o"
    folder.write("run.yaml", "_base_: base.yaml\nmodel: {target_backend: probe_chat}\n")
    pinned = load_config("run.yaml", ["model.backend=probe_tool"], environ={})
    assert _backends(pinned) == ("probe_tool", "probe_chat", "probe_tool")
    assert pinned.origins["model.target_backend"] == "run.yaml:2:25"
    folder.write("run.yaml", "_base_: base.yaml\nmodel: {backend: probe_tool}\n")
    assert _backends(load_config("run.yaml", environ={})) == ("probe_tool",) * 3
    explicit = load_config("run.yaml", ["model.optimizer_backend=probe_chat"], environ={})
    assert _backends(explicit) == ("probe_chat", "probe_tool", "probe_chat")


def test_a_label_without_effect_is_warned_of_where_the_user_wrote_it(folder: Folder) -> None:
    pins = "optimizer_backend: probe_tool, target_backend: probe_tool"
    config = folder.load(f"model: {{{pins}, backend: probe_chat}}\n")
    assert config.warnings == (
        "run.yaml:2:68: model.backend: has no effect, since model.optimizer_backend and model.target_backend name "
        "others",
    )
    assert not folder.load(f"model: {{{pins}}}\n").warnings
    assert not load_config(
        "run.yaml", ["model.optimizer_backend=probe_tool", "model.target_backend=probe_tool"]
    ).warnings
    assert folder.load("model: {target: gpt-x}\n", "model.backend=probe_tool").backends["target"].model == "gpt-x"


def test_settings_are_found_from_the_nearest_to_the_farthest(folder: Folder) -> None:
    environ = {
        "TARGET_PROBE_CHAT_BASE_URL": "http://target-env",
        "PROBE_CHAT_BASE_URL": "http://env",
        "PROBE_CHAT_TIMEOUT_SECONDS": "7",
        "PROBE_CHAT_VERBOSE": "yes",
        "PROBE_PLACE": "no",
        "PROBE_CHAT_TEMPERATURE": "",
    }
    config = folder.load("", environ=environ)
    target, optimizer = config.backends["target"], config.backends["optimizer"]
    assert (target.settings.base_url, optimizer.settings.base_url) == ("http://target-env", "http://env")
    assert (target.settings.timeout_seconds, target.settings.verbose, target.settings.region) == (7.0, True, "no")
    assert target.settings.temperature is None
    assert config.origins["model.target_probe_chat_base_url"] == "environment variable TARGET_PROBE_CHAT_BASE_URL"
    config = folder.load(
        "model: {probe_chat_base_url: 'http://yaml', target_probe_chat_timeout_seconds: 9}\n", environ=environ
    )
    assert config.backends["target"].settings.base_url == "http://yaml"
    assert config.backends["target"].settings.timeout_seconds == 9.0
    assert config.backends["optimizer"].settings.timeout_seconds == 7.0
    config = folder.load("model: {probe_chat_base_url: '', target_probe_chat_base_url: null}\n", environ=environ)
    assert config.backends["target"].settings.base_url == "http://target-env"


def test_case_o_f2_unset_asks_the_environment_and_false_does_not(folder: Folder) -> None:
    environ = {"PROBE_CHAT_VERBOSE": "true"}
    assert folder.load("model: {probe_chat_verbose: null}\n", environ=environ).backends["target"].settings.verbose
    config = folder.load("model: {probe_chat_verbose: false}\n", environ=environ)
    assert config.backends["target"].settings.verbose is False
    assert config.origins["model.target_probe_chat_verbose"] == "run.yaml:2:29"


def test_a_wrong_environment_variable_is_named(folder: Folder) -> None:
    (problem,) = folder.problems("", environ={"PROBE_CHAT_TIMEOUT_SECONDS": "soon"})
    assert problem == (
        "environment variable PROBE_CHAT_TIMEOUT_SECONDS: model.probe_chat_timeout_seconds: expected a number, got the "
        "text 'soon'"
    )


def test_the_model_is_named_by_role_backend_deployment_or_default(folder: Folder) -> None:
    assert folder.load("").backends["target"].model == "probe-model"
    environ = {"TARGET_DEPLOYMENT": "deployed"}
    assert folder.load("", environ=environ).backends["target"].model == "deployed"
    environ["PROBE_CHAT_MODEL"] = "of-env"
    assert folder.load("", environ=environ).backends["target"].model == "of-env"
    config = folder.load("model: {probe_chat_model: of-backend}\n", environ=environ)
    assert config.backends["target"].model == config.backends["optimizer"].model == "of-backend"
    config = folder.load("model: {probe_chat_model: of-backend, target: of-role}\n", environ=environ)
    assert config.backends["target"].model == config.backends["target"].settings.model == "of-role"
    assert folder.load("", "model.backend=probe_tool").backends["target"].model is None


@pytest.mark.skipif(
    any(plugin.name in ("claude_chat", "cursor_exec") for plugin in installed("backend")),
    reason="a distribution of that name is installed here",
)
def test_a_model_that_a_user_names_is_never_replaced_but_the_earlier_default_is_doubted(
    folder: Folder, install: Callable[..., Path], manifest_of: Callable[..., str]
) -> None:
    for name in ("claude_chat", "cursor_exec"):
        module = manifest_of("backend", name, settings="acme_probes.settings:ChatSettings", prefix=f"{name}_")
        install(f"acme-{name} 1.0", {f"skillopt.backends {name}": f"acme_{name}:plugin"}, {f"acme_{name}.py": module})
    config = folder.load("model: {backend: claude, optimizer: gpt-5.5, target: claude-mine}\n")
    assert [config.backends[role].model for role in ROLES] == ["gpt-5.5", "claude-mine", "gpt-5.5"]
    assert config.warnings == (
        "run.yaml:2:26: model.optimizer: 'gpt-5.5' is kept, but claude_chat hardly serves it; earlier versions had "
        "this default and replaced it. Delete the line for the default of claude_chat",
    )
    flat = folder.load("backend: cursor\ntarget_model: gpt-5.4\noptimizer_backend: probe_chat\n")
    assert flat.backends["target"].model == "gpt-5.4"
    assert len(flat.warnings) == 1 and flat.warnings[0].startswith("run.yaml:3:1: target_model: 'gpt-5.4' is kept")
    for text, override in (
        ("model: {backend: claude}\n", "model.target=gpt-5.5"),  # just now written
        ("model: {target: gpt-5.5}\n", "model.backend=probe_chat"),  # a backend that may well serve it
        ("model: {backend: claude, target: gpt-5.1}\n", "train.seed=1"),  # never a default
    ):
        assert not folder.load(text, override).warnings
    unset = folder.load("model: {backend: claude, optimizer: '', target: null}\n")
    assert {choice.model for choice in unset.backends.values()} == {"probe-model"} and not unset.warnings


def test_the_judge_follows_the_optimizer_unless_it_says_otherwise(folder: Folder) -> None:
    text = "model: {optimizer: wise, optimizer_probe_chat_base_url: 'http://o', target_probe_chat_base_url: 'http://t'"
    judge = folder.load(text + "}\n").backends["judge"]
    assert (judge.name, judge.model, judge.settings.base_url) == ("probe_chat", "wise", "http://o")
    judge = folder.load(text + ", judge: strict, judge_probe_chat_base_url: 'http://j'}\n").backends["judge"]
    assert (judge.model, judge.settings.base_url) == ("strict", "http://j")
    judge = folder.load(text + ", judge_backend: probe_tool}\n").backends["judge"]
    assert (judge.name, judge.model) == ("probe_tool", None)


def test_a_backend_that_is_not_installed_is_told_once(folder: Folder) -> None:
    here = {plugin.name for plugin in installed("backend")}
    missing = [name for name in known_names("backend") if name not in here | set(TARGET_ONLY)]
    if not missing:
        pytest.skip("every backend of ours is installed here")
    (problem,) = folder.problems(f"model:\n  backend: {missing[0]}\n")
    distribution = f"skillopt-backend-{missing[0].replace('_', '-')}"
    assert f"there is no backend named {missing[0]!r}. Install it with: pip install {distribution}." in problem


def test_credentials_are_collected_and_shown_nowhere(folder: Folder) -> None:
    text = "model: {optimizer_probe_chat_api_key: sk-yaml-1, target_probe_chat_api_key: 12345678}\n"
    text += "hooks: {settings: {'acme.hooks:C': {api_token: tok-1234}}, plugins: ['acme.hooks:C']}\n"
    config = folder.load(text)
    assert config.credentials == {"sk-yaml-1", "12345678", "tok-1234"}
    shown = f"{config} {config.as_dict()} {config.fingerprint()} {config.origins}"
    assert not [secret for secret in config.credentials if secret in shown]
    assert config.as_dict()["model"]["target_probe_chat_api_key"] == "[redacted]"
    from_environment = folder.load("", environ={"TARGET_PROBE_CHAT_API_KEY": "sk-env-12"})
    assert from_environment.credentials == {"sk-env-12"} and "sk-env-12" not in str(from_environment.as_dict())


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("model.probe_chat_api_key", "PROBE_CHAT_API_KEY instead"),
        ("probe_chat_api_key", "-o model.probe_chat_api_key: a credential"),
        ("model.target_probe_chat_api_key", "TARGET_PROBE_CHAT_API_KEY instead"),
        (
            "model.judge_probe_chat_licence",
            "JUDGE_PROBE_LICENCE instead",
        ),  # secret, and from a variable of its own name
        ("model.qwen_chat_api_key", "QWEN_CHAT_API_KEY instead"),  # neither in use nor installed
        ("hooks.settings={'acme.hooks:C': {api-key: VALUE}} hooks.plugins=['acme.hooks:C']", "a file that only you"),
    ],
)
def test_a_credential_on_the_command_line_is_warned_of_once_without_its_value(
    folder: Folder, key: str, told: str
) -> None:
    words = [word.replace("VALUE", "sk-secret-7") for word in (key if "=" in key else f"{key}=VALUE").split(" h")]
    config = folder.load("", words[0], *(f"h{word}" for word in words[1:]))
    (warning,) = config.warnings
    assert told in warning and "sk-secret-7" not in warning
    assert "sk-secret-7" in config.credentials


@pytest.mark.parametrize("override", ["model.probe_chat_api_key=", "model.rewrite_max_completion_tokens=9000"])
def test_what_is_no_credential_is_not_warned_of(folder: Folder, override: str) -> None:
    assert not folder.load("", override).warnings


def test_a_credential_of_the_wrong_type_is_not_quoted(folder: Folder) -> None:
    (problem,) = folder.problems("model: {probe_chat_api_key: [sk-secret-7]}\n")
    assert "sk-secret-7" not in problem and problem.startswith("run.yaml:2:9: model.probe_chat_api_key: ")


# skillopt config -------------------------------------------------------------------------------------------


def test_config_show_prints_what_can_be_loaded_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_CHAT_API_KEY", "sk-secret-9")
    folder.load("env: {tags: [a]}\nevaluation: {gate_mixed_weight: 0.5}\n")
    result = CliRunner().invoke(command, ["show", "run.yaml", "-o", "train.seed=3", "train.batch_size=2", "--origins"])
    assert result.exit_code == 0 and "sk-secret-9" not in result.output
    assert re.search(r"\n  seed: 3 +# -o\n", result.output)
    assert "# environment variable PROBE_CHAT_API_KEY" in result.output
    assert "#   evaluation.gate_mixed_weight  run.yaml:3:33  (the gate mixed is not in use)" in result.output
    folder.write("again.yaml", result.output)
    again = load_config("again.yaml")
    assert (again.train.seed, again.train.batch_size) == (3, 2) and again.driver("env").settings.tags == ["a"]
    assert again.credentials == {"sk-secret-9"}


def test_config_list_and_copy(folder: Folder) -> None:
    runner = CliRunner()
    listed = runner.invoke(command, ["list"]).output
    assert "probes" in listed and "package:skillopt_kernel/default.yaml" in listed
    assert runner.invoke(command, ["copy", "probes", "--to", "mine.yaml"]).exit_code == 0
    assert load_config("mine.yaml", environ={}).driver("env").name == "probe_env"
    again = runner.invoke(command, ["copy", "probes", "--to", "mine.yaml"])
    assert isinstance(again.exception, ConfigError) and "is there already" in str(again.exception)
    folder.write("mine.yaml", "changed")
    assert runner.invoke(command, ["copy", "probes", "--to", "mine.yaml", "--force"]).exit_code == 0
    assert "probe_env" in (folder.root / "mine.yaml").read_text()
    unknown = runner.invoke(command, ["copy", "nothing"])
    assert isinstance(unknown.exception, ConfigError) and "no packaged configuration" in str(unknown.exception)
    missing = runner.invoke(command, ["copy", "probes", "--to", "no/such/folder.yaml"])
    assert isinstance(missing.exception, ConfigError) and "cannot be written" in str(missing.exception)


def test_two_packages_that_carry_one_name_are_an_error(
    folder: Folder, install: Callable[..., Path], manifest_of: Callable[..., str]
) -> None:
    install(
        "acme-second 1.0",
        {"skillopt.envs second": "acme_second:plugin"},
        {"acme_second/__init__.py": manifest_of("env", "second"), "acme_second/configs/probes.yaml": "train: {}\n"},
    )
    with pytest.raises(ConfigError, match=r"carried by package:acme_probes/.* and by package:acme_second/"):
        load_config("probes")
