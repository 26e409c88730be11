"""`.env.example` says what the backends read, and nothing reads it by itself."""

from __future__ import annotations

import os
import subprocess
import sys

import attrs
import pytest
from skillopt_kernel.config import load_config
from skillopt_kernel.plugins.discovery import installed, load_manifest, settings_class

SHELL = "set -a; . ./.env; set +a; env"
"""What the file tells people to do, and then what the shell's environment is."""

CONFIGURATION = {"model": {"backend": "openai_compatible"}}


def read_by_a_shell(folder):
    """The environment of a shell that has read `.env` in the folder."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(["sh", "-ec", SHELL], cwd=folder, env=clean, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_it_is_what_the_settings_classes_say(root):
    done = subprocess.run([sys.executable, root / "tools/env-example", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_setting_of_every_backend_is_in_it_once(root):
    lines = (root / ".env.example").read_text("utf-8").splitlines()
    names = [line.removeprefix("#").partition("=")[0] for line in lines if line.startswith("#") and "=" in line]
    expected = {"OPTIMIZER_DEPLOYMENT", "TARGET_DEPLOYMENT", "JUDGE_DEPLOYMENT"}
    for plugin in installed("backend"):
        manifest = load_manifest("backend", plugin.name)
        settings = settings_class(manifest)
        for field in attrs.fields(settings) if settings else ():
            expected.add(field.metadata.get("env") or f"{manifest.prefix}{field.name}".upper())
    assert {"OPENAI_COMPATIBLE_API_KEY", "SIMULATED_WORLD"} <= expected <= set(names)
    assert len(names) == len(set(names))


def test_as_it_is_it_sets_nothing(root, tmp_path):
    (tmp_path / ".env").write_text("", "utf-8")
    before = read_by_a_shell(tmp_path)
    (tmp_path / ".env").write_bytes((root / ".env.example").read_bytes())
    assert read_by_a_shell(tmp_path) == before


def test_with_every_line_in_use_it_says_the_defaults(root, tmp_path):
    text = (root / ".env.example").read_text("utf-8")
    used = [line.removeprefix("#") if "=" in line and not line.startswith("# ") else line for line in text.splitlines()]
    (tmp_path / ".env").write_text("\n".join(used), "utf-8")
    environment = read_by_a_shell(tmp_path)
    assert environment["OPENAI_COMPATIBLE_TIMEOUT_SECONDS"] == "300.0"
    for backend in {plugin.name for plugin in installed("backend")}:
        configuration = {"model": {"backend": backend, "optimizer_backend": backend}}
        plain, read = (load_config(configuration, environ=each) for each in ({}, environment))
        assert plain.as_dict() == read.as_dict()


def test_nothing_reads_a_dotenv_by_itself(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text(
        "OPENAI_COMPATIBLE_MODEL=from-the-file\nOPENAI_COMPATIBLE_API_KEY=sk-file\n", "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_COMPATIBLE_MODEL", raising=False)
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)
    config = load_config(CONFIGURATION)
    assert config.backends["target"].model == "gpt-4o-mini" and not config.credentials
    start = "from skillopt_kernel.cli.main import main; raise SystemExit(main())"
    shown = subprocess.run(
        [sys.executable, "-c", start, "config", "show", "default", "-o", "model.backend=openai_compatible"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "from-the-file" not in shown and 'target: "gpt-4o-mini"' in shown
    assert load_config(CONFIGURATION, environ=read_by_a_shell(tmp_path)).backends["target"].model == "from-the-file"


@pytest.mark.parametrize("name", ["dotenv", "environs", "decouple"])
def test_no_distribution_depends_on_a_reader_of_dotenv(distributions, name):
    assert not [each.name for each in distributions if any(name in line for line in each.requirements)]


def test_git_ignores_what_people_write(root):
    assert ".env" in (root / ".gitignore").read_text("utf-8").splitlines()
