"""The keys of `env` that this environment owns."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path

import attrs
from attrs import frozen
from skillopt_kernel.config.fields import at_least, between, option

AUTH_VARIABLE, ADDRESS_VARIABLE = "OFFICEQA_CUSTOM_SEARCH_AUTH", "OFFICEQA_SEARCH_API_URL"


def _mode(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if value in ("azure", "azure_search"):
        raise ValueError(
            f"cannot be {value!r}: a provider's own web search cannot be recorded and resumed call by call. Use "
            f"custom_search with a search service (env.search_api_url), or offline"
        )
    if value not in ("offline", "custom_search", "custom"):
        raise ValueError(f"must be offline or custom_search, not {value!r}")


@frozen
class OfficeQASettings:
    """Where the documents are, how the target may look for the answer, and how strictly numbers are compared."""

    # Which documents a run used is told by its tasks, wherever they lie.
    data_dirs: tuple[Path, ...] = option(
        (), "folders of the documents; empty: the variable OFFICEQA_DOCS_DIR", path="lazy", free=True
    )
    docs_dirs: tuple[Path, ...] = option(
        (), "older name of data_dirs, which it takes the place of", path="lazy", free=True
    )
    index_dir: Path | None = option(
        None, "folder where the search index is kept; empty: nowhere", path="output", free=True
    )
    search_mode: str = option("offline", "where to look: offline (the documents) or custom_search (the web)", _mode)
    use_local_tools: bool = option(True, "offline: give tools; false: the gold pages alone, one call")
    gold_sources: bool = option(False, "tell the target which documents and pages hold the answer")
    max_tool_turns: int = option(12, "model calls of an attempt; the last must answer", at_least(1))
    max_completion_tokens: int = option(16384, "token limit of each reply", at_least(1))
    tolerance: float = option(
        0.0, "relative error of a number that `hard` allows (published: 0 to 0.05)", between(0, 1)
    )
    max_queries_per_turn: int = option(4, "custom_search: queries of one turn", at_least(1))
    search_api_url: str = option("", "address of the search service; empty: the variable OFFICEQA_SEARCH_API_URL")
    search_auth_env: str = option(
        AUTH_VARIABLE, "the variable that holds the search service's credential", secret=False
    )
    search_provider: str = option("duckduckgo", "what the search service is to search with")
    search_max_num_results: int = option(4, "results of one query", at_least(1))
    search_timeout_seconds: float = option(20, "seconds until one search request is given up", at_least(1))

    @property
    def online(self) -> bool:
        """Whether the target looks for the answer on the web."""
        return self.search_mode != "offline"
