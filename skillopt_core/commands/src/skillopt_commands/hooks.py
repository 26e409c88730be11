"""`skillopt hooks`: every hook with its arguments, and who is asked under a configuration."""

from __future__ import annotations

import inspect

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, config_options, loaded, override_option
from skillopt_kernel.console import echo


def kind_of(hook: str) -> str:
    """How the answers of a hook are used: "first answer", "all answers" or "observer"."""
    from skillopt_kernel.hookspecs import OBSERVERS, STAGES

    stage = hook.removeprefix("skillopt_")
    return "first answer" if stage in STAGES else "observer" if stage in OBSERVERS else "all answers"


@click.group(invoke_without_command=True)
@click.pass_context
def hooks(ctx: click.Context) -> None:
    """List every hook in the order of the loop, with its arguments."""
    if ctx.invoked_subcommand is not None:
        return
    from skillopt_kernel import hookspecs
    from skillopt_kernel.plugins.registry import HOOKS

    for hook, arguments in HOOKS.items():
        echo(f"{hook}({', '.join(arguments)})  [{kind_of(hook)}]")
        summary = (inspect.getdoc(getattr(hookspecs, hook)) or "").partition("\n\n")[0]
        echo(f"    {' '.join(summary.split())}")


@hooks.command(cls=SeveralAfterOneFlag)
@config_options
@override_option
def explain(config: str | None, config_option: str | None, overrides: tuple[str, ...]) -> None:
    """Print who is asked at each hook under CONFIG, in order; `[wrap]` stands around those that follow it."""
    from skillopt_kernel.plugins.assembly import assemble
    from skillopt_kernel.plugins.registry import HOOKS
    from skillopt_kernel.stages import default_stages

    resolved = loaded(config, config_option, overrides)
    folder = resolved.path.parent if resolved.path is not None else None
    assembled = assemble(default_stages(), resolved.hooks, folder, where=resolved.place_of)
    for hook in HOOKS:
        asked = assembled.asked(hook)
        names = [f"[wrap] {each.plugin}" if each.wrapper else each.plugin for each in asked]
        echo(f"{hook}: {' -> '.join(names) or 'nobody'}")
    for plugin, owner in assembled.owners.items():
        echo(f"{plugin} comes from {owner}")
