"""What is known of models and of Azure: the data file `models.toml`, read once."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, cast
from urllib.parse import urlsplit

from attrs import frozen
from skillopt_lib_chat.options import Api

_DATE = re.compile(r"-20\d\d-\d\d-\d\d$")
_TUNED = re.compile(r"^ft:([^:]+).*")


@frozen
class ModelFacts:
    """What one model can do: its API, the reasoning efforts that it takes, whether it takes a temperature."""

    api: Api = "chat_completions"
    efforts: tuple[str, ...] = ()
    temperature: bool = True


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("skillopt_backend_openai_chat") / "models.toml").read_text(encoding="utf-8"))


def facts_of(model: str) -> ModelFacts:
    """The facts of a model by its name: a date, a provider before it and a fine-tuned model's own name do not count."""
    name = _TUNED.sub(r"\1", model.strip().lower()).rpartition("/")[2]
    name = _DATE.sub("", name)
    for entry in _data()["model"]:
        if any(fnmatchcase(name, pattern) for pattern in entry["names"]):
            told = {key: value for key, value in entry.items() if key != "names"}
            return ModelFacts(**told | {"efforts": tuple(told.get("efforts", ()))})
    return ModelFacts()


def azure_api_version(api: Api) -> str:
    """The version of Azure's API that is asked for where the configuration names none."""
    return cast(str, _data()["azure"]["api_versions"][api])


def takes_tokens(endpoint: str) -> bool:
    """Whether a token may be sent to an address: one of Azure's hosts, over HTTPS."""
    parts = urlsplit(endpoint.strip())
    host = (parts.hostname or "").lower()
    return parts.scheme == "https" and host.endswith(tuple(_data()["azure"]["token_hosts"]))
