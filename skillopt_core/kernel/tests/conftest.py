"""What several of the kernel's tests need: distributions that are installed in a temporary folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from skillopt_kernel_config_probes import Folder, install_probes

Install = Callable[..., Path]


def lay_out(folder: Path, distribution: str, entries: Mapping[str, str], files: Mapping[str, str]) -> Path:
    """An installed distribution as an installer leaves it: modules, METADATA, entry_points.txt.

    entries: "group name" -> value. files: path -> text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    name, _, version = distribution.partition(" ")
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    groups: dict[str, list[str]] = {}
    for key, value in entries.items():
        group, _, entry = key.partition(" ")
        groups.setdefault(group, []).append(f"{entry} = {value}")
    text = "".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in groups.items())
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install("acme-gate 1.0", {"skillopt.gates acme": "acme_gate:plugin"}, {"acme_gate.py": "..."})`."""
    loaded = set(sys.modules)
    count = 0

    def do(distribution: str, entries: Mapping[str, str], files: Mapping[str, str]) -> Path:
        nonlocal count
        count += 1
        folder = lay_out(tmp_path / f"site-{count}", distribution, entries, files)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    yield do
    for name in set(sys.modules) - loaded:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def manifest_text(kind: str, name: str, **facts: object) -> str:
    """The text of a module whose `plugin` is a manifest."""
    given: dict[str, object] = {"api": 1, "summary": f"the {kind} {name}", "factory": f"acme_{name}:make", **facts}
    fields = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return (
        "from skillopt_kernel.plugins.manifest import Manifest\n"
        f"plugin = Manifest(kind={kind!r}, name={name!r}, {fields})\n"
    )


@pytest.fixture
def manifest_of() -> Callable[..., str]:
    return manifest_text


@pytest.fixture
def folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    install: Install,
    manifest_of: Callable[..., str],
) -> Folder:
    """A working directory beside an installed distribution of probe drivers, for the tests of the configuration."""
    install_probes(install, manifest_of)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return Folder(work)
