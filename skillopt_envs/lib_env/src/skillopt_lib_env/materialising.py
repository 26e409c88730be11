"""What commands of `skillopt data` share: their options, and writing a split to a folder that a run can use.

An environment names its command in its manifest (`data="package.module:command"`)::

    @click.command()
    @split_options("mybench", manifest="package:skillopt_env_mybench/manifest")
    def data(out: Path, manifest: Path, replace: bool) -> None:
        prepare_folder(out, replace)
        parts = read_manifest(manifest).matched(rows, id_of, source)
        write_split("mybench", out, {part: [item.fields for item in items] for part, items in parts.items()}, facts)
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.config.packaged import PREFIX, package_path
from skillopt_kernel.console import echo
from skillopt_kernel.errors import DataError
from skillopt_kernel.splits import PARTS
from skillopt_kernel.store.files import writing

from skillopt_lib_env.ratio_split import write_parts
from skillopt_lib_env.split_manifest import FACTS
from skillopt_lib_env.wording import few_of

Command = Callable[..., Any]


def _folder(context: click.Context, parameter: click.Parameter, text: str) -> Path:
    return package_path(text, "--manifest") if text.startswith(PREFIX) else Path(text)


def split_options(name: str, *, manifest: str, folder: str = "") -> Callable[[Command], Command]:
    """The options `--out`, `--manifest` and `--replace` of a command that writes a published split.

    name      of the environment
    folder    where its packaged configuration looks for the split; empty: `data/<name>_split`
    manifest  of the published split: a folder, or `package:import_name/folder`
    """

    def decorated(function: Command) -> Command:
        for option in (
            click.option("--replace", is_flag=True, help="Write the split anew in a folder that holds one."),
            click.option(
                "--manifest",
                callback=_folder,
                default=manifest,
                metavar="FOLDER",
                help="Split manifest to follow: train/, val/ and test/, each with an items.json that lists ids. "
                "Default: the published split.",
            ),
            click.option(
                "--out",
                type=click.Path(path_type=Path),
                default=Path(folder or f"data/{name}_split"),
                show_default=True,
                metavar="FOLDER",
                help="Where the split is written.",
            ),
        ):
            function = option(function)
        return function

    return decorated


def prepare_folder(out: Path, replace: bool) -> None:
    """Make sure, before anything is fetched, that a split may be written to `out`.

    Raises `DataError` for a file, for a folder that holds something without `replace`, and with it for one that holds
    something else than a split.
    """
    if out.exists() and not out.is_dir():
        raise DataError(f"--out: {out} is a file; name a folder that is to be made.")
    if out.name in ("", ".."):
        raise DataError(f"--out: {out} names no folder that could be made; give it a name, as in data/split.")
    held = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if held and not replace:
        raise DataError(f"--out: {out} holds {few_of(held)} already. Name another folder, or write it anew: --replace.")
    if held and FACTS not in held:
        raise DataError(
            f"--out: {out} holds {few_of(held)} and no {FACTS}, so it is no split that could be replaced. Name another "
            f"folder."
        )


def write_split(
    name: str,
    out: Path,
    parts: Mapping[str, Sequence[Mapping[str, Any]]],
    facts: Mapping[str, Any],
    files: Callable[[Path], None] | None = None,
) -> None:
    """Write the items of "train", "selection" and "test" to `out`, and say how to train on them.

    name   of the environment
    facts  go into split_manifest.json, with the counts
    files  writes further files into a folder that stands beside `out` until all is written, and is then moved there
    """
    making = out.with_name(f".{out.name}.part")
    with writing(out):
        shutil.rmtree(making, ignore_errors=True)
        try:
            write_parts(making, parts, facts)
            if files is not None:
                files(making)
            _move(making, out)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    counts = ", ".join(f"{len(parts.get(part, ())):,} {part}" for part in PARTS)
    echo(f"{out}: {counts} tasks.")
    echo(f"Train on them with: skillopt train {name} -o env.split_dir={out}")


def _move(making: Path, out: Path) -> None:
    """Move everything from `making` to `out` in place of what has the same name there, the manifest last."""
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(making.iterdir(), key=lambda each: each.name == FACTS):
        if (out / path.name).is_dir():
            shutil.rmtree(out / path.name)
        path.replace(out / path.name)
