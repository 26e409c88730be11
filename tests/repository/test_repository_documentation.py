"""README, CONTRIBUTING and the READMEs of the distributions say what is true."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from skillopt_kernel.cli.main import cli
from skillopt_kernel.plugins.discovery import installed


def prose(root):
    return {name: (root / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")}


def test_every_file_that_is_named_exists(root):
    for name, text in prose(root).items():
        for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|txt|toml|ini|py|yaml))`", text):
            places = (root, root / "skillopt_core/kernel/src/skillopt_kernel")
            made_by_a_run = path.startswith(("outputs/", "data/", "src/", "tests/")) or path in (
                "best_skill.md", "report.md", "mine.yaml", "uv.lock",
            )  # fmt: skip
            assert made_by_a_run or any((place / path).exists() for place in places), f"{name} names {path}"


def test_every_command_of_skillopt_is_real(root):
    commands = {plugin.name for plugin in installed("command")}
    for name, text in prose(root).items():
        for word in re.findall(r"(?:^|[`/ ])skillopt ([a-z]+)\b", text):
            if word in commands:
                assert CliRunner().invoke(cli, [word, "--help"]).exit_code == 0
            else:
                assert word in ("a", "the", "trains"), f"{name} names `skillopt {word}`"
    for command in commands:
        assert f"skillopt {command}" in prose(root)["README.md"], f"README.md leaves out `skillopt {command}`"


def test_every_top_level_folder_is_on_the_map(root, committed):
    folders = {path.relative_to(root).parts[0] for path in committed if len(path.relative_to(root).parts) > 1}
    for folder in folders - {".ci", "tools"}:
        assert f"{folder}/" in prose(root)["README.md"], f"the map of README.md leaves out {folder}/"


def test_the_two_commands_are_what_ci_runs(root):
    readme, script = prose(root)["README.md"], (root / ".ci/run").read_text(encoding="utf-8")
    assert "pip install -q -r requirements.txt" in readme
    assert ".venv/bin/tox" in readme
    assert re.search(r"/pip\" install .*-r requirements.txt\n.*/skillopt\" train demo.*\n.*/tox\" run", script)


def test_a_distributions_readme_says_what_it_is_and_how_to_install_it(distribution):
    lines = (distribution.folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"# {distribution.name}"
    assert lines[2].strip(), "the third line says what it is"
    assert any(line.strip().startswith("pip install") for line in lines)
    assert sum(1 for line in lines if line.strip()) >= 4, "what, install, configure"


def test_packaged_keys_in_readmes_exist(distribution):
    """A key that a README names with its section is one that the plugin, or the kernel, has."""
    import attrs
    from skillopt_kernel.config.schema import SECTIONS
    from skillopt_kernel.plugins.discovery import installed, load_manifest, settings_class

    text = (distribution.folder / "README.md").read_text(encoding="utf-8")
    known = {f"{section}.{field.name}" for section, kernel in SECTIONS.items() for field in attrs.fields(kernel)}
    for plugin in installed():
        manifest = load_manifest(plugin.kind, plugin.name)
        settings = settings_class(manifest)
        section = manifest.section or {"backend": "model", "env": "env"}.get(plugin.kind, "")
        if manifest.keys:  # a hook plugin's settings may stand beside its switch
            known |= set(manifest.keys)
            section = manifest.keys[0].partition(".")[0]
        for field in attrs.fields(settings) if settings else ():
            for role in ("", "optimizer_", "target_", "judge_") if plugin.kind == "backend" else ("",):
                known.add(f"{section}.{role}{manifest.prefix}{field.name}")
    named = re.findall(rf"`(?:-o )?((?:{'|'.join(SECTIONS)})\.[a-z_]+)[`:=]", text)
    assert set(named) <= known


@pytest.mark.parametrize("name", ["CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_pages_have_one_title(root, name):
    titles = re.findall(r"^# .+$", (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(titles) == 1
