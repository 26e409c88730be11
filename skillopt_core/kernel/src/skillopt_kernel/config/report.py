"""What `skillopt config show` prints: the resolved configuration as YAML, with origins and unused keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skillopt_kernel.config.resolved import Config


def lines(config: Config, origins: bool = False) -> Iterator[str]:
    """The lines of a YAML file that says what `config` says; credentials stand as "[redacted]".

    origins: where each value came from, as a comment behind it, and the keys that nothing in use reads.
    """
    yield f"# {config.name}" + (f" ({config.path})" if config.path is not None else "")
    for section, values in config.as_dict().items():
        yield ""
        yield f"{section}:" if values else f"{section}: {{}}"
        written = {key: f"  {key}: {_flow(value)}" for key, value in values.items()}
        width = min(max((len(line) for line in written.values()), default=0), 44)
        for key, line in written.items():
            yield f"{line:<{width}}  # {config.origins.get(f'{section}.{key}', 'default')}" if origins else line
    if origins and config.unused:
        yield ""
        yield "# Keys that nothing in use reads:"
        yield from (f"#   {key}  {config.origins.get(key, '')}  ({why})" for key, why in config.unused.items())


def _flow(value: Any) -> str:
    """JSON is YAML's flow style, and leaves no doubt what is a text."""
    return json.dumps(value, ensure_ascii=False)


def prompt_lines(config: Config) -> Iterator[str]:
    """Each prompt of the run: its name, where it was found and its hash, then its text."""
    import logging

    from skillopt_kernel.interfaces import DriverContext
    from skillopt_kernel.plugins.discovery import make_driver
    from skillopt_kernel.prompting import resolve_prompts

    context = DriverContext(logger=logging.getLogger("skillopt"), seed=config.train.seed, common=config.env)
    made = {
        kind: make_driver(kind, choice.name, choice.settings, context, choice.where)
        for kind, choice in config.drivers.items()
        if kind in ("env", "update")
    }
    for prompt in resolve_prompts(config.prompts, made.get("env"), made["update"]).values():
        yield f"===== {prompt.name}  {prompt.hash}  {prompt.source}"
        yield prompt.text.rstrip("\n")
        yield ""
