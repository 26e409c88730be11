"""Finds a world file and its data and checks both before the first call. Every problem is a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skillopt_kernel.config.packaged import PREFIX, package_path
from skillopt_kernel.errors import ConfigError, DataError
from skillopt_kernel.plugins.errors import nearest

from skillopt_backend_simulated.reading import StrictFile
from skillopt_backend_simulated.world import Question, World, plain
from skillopt_backend_simulated.world_file import WorldFile

KEY = "model.simulated_world"


def load_world(source: Path | str | None) -> World:
    """The world at `source`, a path or `package:import_name/sub/path.yaml`.

    Raises `ConfigError` for the world file, `DataError` for its data, each with file, place and cure.
    """
    path = _find(source)
    written = StrictFile(path, WorldFile)
    _check_rules(written)
    _check_kinds(written)
    written.stop_if_wrong()
    file: WorldFile = written.made
    return World(str(path), file, _questions(path, file))


def _find(source: Path | str | None) -> Path:
    if source is None or not str(source).strip():
        raise ConfigError(
            f"the backend simulated needs a world file: set `{KEY}` to its path, or to "
            "`package:skillopt_env_searchqa/demo/world.yaml` for the world of the demo."
        )
    if str(source).startswith(PREFIX):
        return package_path(str(source), KEY)
    path = Path(source).expanduser()
    if not path.is_file():
        raise ConfigError(f"{KEY}: there is no file {str(source)!r} ({path.absolute()}); correct the path.")
    return path


def _check_kinds(written: StrictFile) -> None:
    file: WorldFile = written.made
    if not file.kinds:
        written.problem(("kinds",), "must hold at least one kind of task")
    if not file.data:
        written.problem(("data",), "must name at least one file of questions")
    for name, kind in file.kinds.items():
        here = ("kinds", name)
        for need in kind.needs:
            if need not in file.rules:
                written.problem((*here, "needs"), f"`rules` holds no {need!r}{_did_you_mean(need, file.rules)}")
        if bool(kind.marker.strip()) == bool(kind.pattern):
            written.problem(here, "needs either `marker` or `pattern`: one of them, and not blank")
        try:
            re.compile(kind.pattern)
        except re.error as error:
            written.problem((*here, "pattern"), f"is not a regular expression: {error}")
        if kind.right_with < kind.right_without:
            written.problem((*here, "right_with"), "must not be below `right_without`; a rule that harms has `harms`")


def _check_rules(written: StrictFile) -> None:
    file: WorldFile = written.made
    sentences = {name: plain(rule.sentence).rstrip(".") for name, rule in file.rules.items()}
    for name, rule in file.rules.items():
        for kind, amount in rule.harms.items():
            here = ("rules", name, "harms", kind)
            if kind != "all" and kind not in file.kinds:
                written.problem(here, f"`kinds` holds no {kind!r}{_did_you_mean(kind, file.kinds)}")
            if not 0.0 <= amount <= 1.0:
                written.problem(here, f"must be from 0 to 1, not {amount}")
        inside = [other for other in sentences if other != name and sentences[name] in sentences[other]]
        if inside:
            # A skill is searched for whole sentences: this one would be found wherever the other stands.
            written.problem(("rules", name, "sentence"), f"also stands in the sentence of {inside[0]!r}; word it anew")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = nearest(name, list(known))
    return f"; did you mean {near!r}?" if near else ""


def _questions(path: Path, file: WorldFile) -> dict[str, Question]:
    kinds = World(str(path), file, {})
    found: dict[str, tuple[Question, str]] = {}
    for pattern in file.data:
        for data in _matching(path, pattern):
            for number, item in enumerate(_items(data), 1):
                where = f"{data}: item {number}"
                question = _question(item, where, kinds)
                before, place = found.setdefault(plain(question.text), (question, where))
                if before.answers != question.answers:
                    raise DataError(f"{where}: the question has other answers than in {place}; word one differently.")
    return {key: question for key, (question, _) in found.items()}


def _matching(path: Path, pattern: str) -> list[Path]:
    try:
        files = sorted(path.parent.glob(pattern))
    except (ValueError, NotImplementedError):
        raise DataError(f"{path}: data: {pattern!r} must be a pattern beside it, such as */items.json.") from None
    if not files:
        raise DataError(f"{path}: data: no file beside the world file matches {pattern!r}; correct the pattern.")
    return files


def _items(path: Path) -> list[Any]:
    try:
        items = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: is not valid JSON: {error.msg}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the world's data cannot be read: {error}.") from None
    if not isinstance(items, list):
        raise DataError(f"{path}: must be a JSON list of items with `question` and `answers`.")
    return items


def _question(item: Any, where: str, world: World) -> Question:
    text = item.get("question") if isinstance(item, dict) else None
    answers = item.get("answers") if isinstance(item, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: `question` must be a text that is not blank.")
    if not isinstance(answers, list) or not answers or not all(isinstance(one, str) and one.strip() for one in answers):
        raise DataError(f"{where}: `answers` must be a list of at least one text.")
    kind = world.kind_of(text)
    if kind is None:
        raise DataError(
            f"{where}: no kind in {world.name} has a marker or pattern that is found in the question {text!r}."
        )
    return Question(text, tuple(answers), kind)
