"""The skill that training starts from."""

from __future__ import annotations

from pathlib import Path

from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import Environment
from skillopt_kernel.loop.length import tokens_of


def start_skill(config: Config, environment: Environment) -> str:
    """The text of `env.skill_init`, or the environment's own initial skill. Raises `ConfigError`."""
    path = config.env.skill_init
    give = getattr(environment, "initial_skill", None)
    text = read_skill(path, "env.skill_init") if path is not None else str(give()) if give is not None else ""
    limit, tokens = config.optimizer.max_skill_tokens, tokens_of(text)
    if 0 < limit < tokens:
        raise ConfigError(
            f"{config.place_of('optimizer.max_skill_tokens')}: is {limit:,}, but the start skill has about {tokens:,} "
            f"tokens already (one for four bytes); raise the limit, or start from a shorter skill (env.skill_init)"
        )
    return text


def read_skill(path: Path, key: str) -> str:
    """The text of a skill file. Raises `ConfigError` when it is missing, no file, or not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{key}: the skill {path} cannot be read ({error.strerror}); correct the path.") from error
