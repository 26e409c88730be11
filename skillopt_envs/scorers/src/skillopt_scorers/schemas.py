"""JSON schemas by jsonschema, which the extra `schema` brings. Nothing is fetched, and no pattern runs for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import ConfigError, EnvironmentFailure

from skillopt_scorers.extras import needed
from skillopt_scorers.json_values import canonical, depth

_SECONDS = 2.0
_SHALLOW = 50
"""Levels of nesting that any schema which ends gets through."""
_DEFAULT = "https://json-schema.org/draft/2020-12/schema"


class Schema:
    """A schema that is sound, made to validate from many threads."""

    def __init__(self, schema: Any, where: str) -> None:
        with needed("schema", "JSON schemas (the scorer json)"):
            import jsonschema
            from jsonschema import validators
            from jsonschema_specifications import REGISTRY
        kind = validators.validator_for(schema, default=validators.validator_for({"$schema": _DEFAULT}))
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ConfigError(
                f"the scorer json: {where} is no JSON schema: {error.message} (at {error.json_path})"
            ) from error
        bounded = {
            name: rule for name, rule in (
                ("pattern", _pattern), ("patternProperties", _pattern_properties), ("uniqueItems", _unique_items),
            ) if name in kind.VALIDATORS
        }  # fmt: skip
        # A registry that retrieves nothing: a schema that refers to an address must not reach the network.
        self._validator = validators.extend(kind, bounded)(schema, registry=REGISTRY)
        self._where = where
        try:
            self.problem({})
        except EnvironmentFailure as error:
            raise ConfigError(f"the scorer json: {error}") from error

    def problem(self, value: Any) -> str:
        """The first thing in which a value does not follow the schema, or "". Raises `EnvironmentFailure`."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            error = best_match(self._validator.iter_errors(value))
        except RecursionError as problem:
            if depth(value, _SHALLOW) > _SHALLOW:
                raise
            raise EnvironmentFailure(f"the JSON schema {self._where} refers to itself without end") from problem
        except Unresolvable as problem:
            raise EnvironmentFailure(
                f"the JSON schema {self._where} refers to {problem.ref!r}, which it does not hold; nothing is fetched"
            ) from problem
        return "" if error is None else f"{error.json_path}: {error.message[:300]}"


def schema_of(inline: Mapping[str, Any], file: Path | None) -> Schema | None:
    """The schema that the settings give. Raises `ConfigError` for one that cannot be used."""
    if inline and file is not None:
        raise ConfigError("the scorer json: give `schema` or `schema_file`, not both")
    if inline:
        return Schema(dict(inline), "`schema`")
    if file is None:
        return None
    try:
        schema = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"the scorer json: the schema file {file} cannot be read: {error}") from error
    return Schema(schema, str(file))


def _found(pattern: str, text: str) -> bool:
    import regex

    try:
        return regex.search(pattern, text, timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise EnvironmentFailure(
            f"the schema's pattern {pattern!r:.200} took more than {_SECONDS:g} seconds on a text of {len(text)} "
            f"characters; write it so that no part of it repeats a repetition"
        ) from error
    except regex.error as error:
        raise EnvironmentFailure(f"the schema's pattern {pattern!r:.200} is no regular expression: {error}") from error


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Equal items are found by what they are written as: comparing each with each takes minutes for a few thousand."""
    from jsonschema import ValidationError

    if wanted and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r:.200} has items that are equal")


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _found(pattern, instance):
        yield ValidationError(f"{instance!r:.200} does not match {pattern!r:.200}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, Mapping):
        for pattern, inner in patterns.items():
            for key, value in instance.items():
                if _found(pattern, key):
                    yield from validator.descend(value, inner, path=key, schema_path=pattern)
