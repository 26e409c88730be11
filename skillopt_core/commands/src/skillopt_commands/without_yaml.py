"""Running without a configuration of one's own: flags that stand for the keys of the packaged configuration `tasks`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.cli.options import OverrideCommand

from skillopt_commands.start_skills import skill_file

CONFIGURATION = "tasks"
"""The packaged configuration that is meant where `--tasks` is given and no CONFIG."""

KEYS = {
    "skill": ("env.skill_init",),
    "scorer": ("env.scorer",),
    "model": ("model.optimizer", "model.target"),
    "backend": ("model.backend",),
}
"""Flag -> the keys that it sets."""


class Given(click.types.StringParamType):
    """A text that must not be empty: an empty one is a shell variable that was not set."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail("it is empty; give a value, or leave the flag out.", param, ctx)
        return value


def task_options(*, skill: bool = False) -> Callable[[OverrideCommand], OverrideCommand]:
    """Add `--tasks`, `--scorer`, `--model` and `--backend` to a command, with `skill` also `--skill`.

    What they say reaches the command as its last overrides, which win over `-o`; messages name the flag.
    """
    told = {
        "tasks": (
            "FILE",
            "Your own tasks, in CSV, JSON or JSON lines, or a folder with train, val and test; no CONFIG.",
        ),
        **(
            {"skill": ("FILE", "The skill to start from: its file, the folder of its SKILL.md, or a finished run.")}
            if skill
            else {}
        ),
        "scorer": ("NAME", "How answers are scored: exact, numeric, ... (env.scorer)."),
        "model": ("NAME", "The model of both optimizer and target."),
        "backend": ("NAME", "Who serves the models (model.backend)."),
    }

    def added(function: OverrideCommand) -> OverrideCommand:
        @functools.wraps(function)
        def command(overrides: tuple[Any, ...], **given: Any) -> Any:
            flags = {name: given.pop(name) for name in told}
            if not (given.get("config_option") or given.get("configs") or given.get("config")):
                if flags["tasks"] is not None:
                    given |= {"configs": (CONFIGURATION,)} if "configs" in given else {"config": CONFIGURATION}
                elif used := [f"--{name}" for name, value in flags.items() if value is not None]:
                    raise click.UsageError(
                        f"{' and '.join(used)} {'is' if len(used) == 1 else 'are'} given, but no tasks: CONFIG is "
                        f"missing. Add --tasks FILE for tasks of yours, or name a configuration."
                    )
            return function(overrides=(*overrides, *_overrides(flags)), **given)

        for name, (metavar, about) in reversed(told.items()):
            command = click.option(f"--{name}", type=Given(), metavar=metavar, help=about)(command)
        return command

    return added


def _overrides(flags: dict[str, str | None]) -> list[Any]:
    from skillopt_kernel.config.load import flag

    found = []
    tasks = flags["tasks"]
    if tasks is not None:
        split_already = (Path(tasks).expanduser() / "train").is_dir()
        mode, key = ("split_dir", "env.split_dir") if split_already else ("ratio", "env.data_path")
        found += [flag("--tasks", "env.split_mode", mode), flag("--tasks", key, tasks)]
    for name, keys in KEYS.items():
        value = flags.get(name)
        if name == "skill" and value is not None and skill_file(value) != Path(value):
            value = str(skill_file(value))
        found += [flag(f"--{name}", key, value) for key in keys if value is not None]
    return found
