"""The skill that training starts from: a file, the best skill of another run, or the environment's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import ConfigError, RunDirectoryError
from skillopt_kernel.interfaces import Environment
from skillopt_kernel.loop.length import tokens_of
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.store.files import read_text
from skillopt_kernel.store.reading import read_run
from skillopt_kernel.store.state import RunState

BEST = "best_skill.md"


@frozen
class StartSkill:
    """A text and where it comes from, as `summary.json` tells it: `from` is file, run or environment."""

    text: str
    source: Mapping[str, Any]


def start_skill(config: Config, environment: Environment) -> StartSkill:
    """What `env.skill_init` names, or the environment's own initial skill. Raises `ConfigError`."""
    path, key = config.env.skill_init, config.place_of("env.skill_init")
    if path is None:
        give = getattr(environment, "initial_skill", None)
        text, source = "" if give is None else str(give()), {"from": "environment"}
    else:
        text, source = skill_at(path, key)
        source = {"from": source["from"], "path": config.written(path), **source}
    limit, tokens = config.optimizer.max_skill_tokens, tokens_of(text)
    if 0 < limit < tokens:
        raise ConfigError(
            f"{config.place_of('optimizer.max_skill_tokens')}: is {limit:,}, but the start skill has about {tokens:,} "
            f"tokens already (one for four bytes); raise the limit, or start from a shorter skill (env.skill_init)"
        )
    return StartSkill(text, {**source, "hash": skill_hash(text)})


def skill_at(path: Path, key: str) -> tuple[str, dict[str, Any]]:
    """The skill in a file, or the best one of the run in a directory, and which of the two it is."""
    return best_of_run(path, key) if path.is_dir() else (read_skill(path, key), {"from": "file"})


def best_of_run(folder: Path, key: str) -> tuple[str, dict[str, Any]]:
    """The best skill of a finished run, and which run and step it is from. Raises `ConfigError` for anything else."""
    run, otherwise = read_run(folder), "or name the Markdown file of the skill that you mean"
    if run.status == "foreign":
        raise ConfigError(f"{key}: {folder} is a folder, but not a run directory; name a run directory, {otherwise}")
    if run.evaluates:
        raise ConfigError(
            f"{key}: {folder} holds an evaluation, which makes no skill; name a run directory, {otherwise}"
        )
    if run.status == "running":
        raise ConfigError(f"{key}: the run in {folder} is still under way (step {run.step}); wait for it, {otherwise}")
    if run.status == "unfinished":
        raise ConfigError(
            f"{key}: the run in {folder} has not come to its end (step {run.step} of {run.total_steps or 'unknown'}); "
            f"run its command again, {otherwise}"
        )
    try:
        state = RunState.load(folder)
        if run.status == "broken" or state is None:
            raise RunDirectoryError(run.problem or f"{folder} holds no saved state.")
        text, kept = read_text(folder / BEST), read_text(folder / state.best_skill_path)
    except RunDirectoryError as error:
        raise ConfigError(f"{key}: the run in {folder} is damaged: {error} Repair it, {otherwise}") from error
    if text != kept:
        raise ConfigError(
            f"{key}: {folder / BEST} is not the skill that the run ended with ({state.best_skill_path}): it was "
            f"changed since. Name that file itself if you mean it, or copy the run's skill over it"
        )
    return text, {"from": "run", "run": folder.resolve().name, "step": state.best_step, "origin": state.best_origin}


def read_skill(path: Path, key: str) -> str:
    """The text of a skill file. Raises `ConfigError` when it is missing, no file, or not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{key}: the skill {path} cannot be read ({error.strerror}); correct the path.") from error
