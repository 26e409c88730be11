"""A search service over HTTP: one POST for each query, its results as numbered text."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import field, frozen
from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.store.redaction import Redactor

from skillopt_env_officeqa.settings import ADDRESS_VARIABLE, OfficeQASettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Target

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try."""

LONGEST_EXCERPT = 1000
LARGEST_ANSWER = 4_000_000
"""Bytes of what the service answers to one query."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LISTS = ("results", "items", "data", "organic", "organic_results", "web", "hits", "documents")
_TITLE, _ADDRESS = ("title", "name", "heading"), ("url", "link", "href")
_EXCERPT = ("snippet", "content", "description", "text", "body", "excerpt")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@frozen
class WebSearch:
    """A search service. `pauses`: seconds before each further try of a query; `wait` waits so long."""

    address: str
    _token: str = field(repr=False)
    provider: str
    results: int
    timeout: float
    pauses: tuple[float, ...] = PAUSES
    wait: Callable[[float], None] = time.sleep

    def search(self, query: str, target: Target) -> str:
        """The results of one query as text; in square brackets what the service said against it.

        Raises `ConfigError` where it refuses the credential, `EnvironmentFailure` where it does not answer.
        """
        for pause in (*self.pauses, None):
            problem = ""
            try:
                status, answer = self._asked(query, target)
            except _unreachable() as error:
                status, answer, problem = 0, None, f"{type(error).__name__}: {error}"
            if status in (401, 403):
                raise ConfigError(
                    f"the search service at {self._shown} refused the credential (HTTP {status}); check the variable "
                    f"that env.search_auth_env names."
                )
            if status == 200:
                return self._told(answer)
            if status and status not in PASSING:
                return f"[the search service refused this query: HTTP {status}]"
            if pause is None or target.cancelled:
                break
            self.wait(pause if target.remaining is None else min(pause, target.remaining))
        what = problem or f"HTTP {status}"
        raise EnvironmentFailure(self._redacted(f"the search service at {self._shown} does not answer: {what}"))

    @property
    def _shown(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.hostname}"

    def _asked(self, query: str, target: Target) -> tuple[int, Any]:
        import httpx2

        seconds = self.timeout if target.remaining is None else max(0.1, min(self.timeout, target.remaining))
        body = {"query": query, "max_num_results": self.results, "provider": self.provider}
        headers = {"Authorization": f"Bearer {self._token}"}
        ends, held = time.monotonic() + seconds, bytearray()
        # Redirects are not followed: the credential is for this address alone.
        with httpx2.stream("POST", self.address, json=body, headers=headers, timeout=seconds) as response:
            if response.status_code != 200:
                return response.status_code, None
            for part in response.iter_bytes():
                held += part
                if len(held) > LARGEST_ANSWER:
                    raise EnvironmentFailure(
                        f"the search service at {self._shown} answered with more than {LARGEST_ANSWER:,} bytes; "
                        f"lower env.search_max_num_results"
                    )
                if time.monotonic() > ends:  # the timeout is of each read alone
                    raise httpx2.ReadTimeout(f"the answer had no end after {seconds:g} s")
        try:
            return 200, json.loads(held)
        except (ValueError, RecursionError) as error:
            raise EnvironmentFailure(
                f"the search service at {self._shown} answered with something that is no JSON"
            ) from error

    def _told(self, answer: Any) -> str:
        found = [entry for entry in _results(answer) if isinstance(entry, Mapping)][: self.results]
        told = [
            f"{number}. {_first(entry, _TITLE) or '(no title)'}\n{_first(entry, _ADDRESS)}\n"
            f"{_first(entry, _EXCERPT)[:LONGEST_EXCERPT]}".strip()
            for number, entry in enumerate(found, start=1)
        ]
        return self._redacted("\n\n".join(told) or "[nothing was found]")

    def _redacted(self, text: str) -> str:
        return Redactor([self._token]).redact(text)


def web_search(settings: OfficeQASettings, environ: Mapping[str, str] = os.environ) -> WebSearch:
    """The search service that the settings name. Raises `ConfigError` without address or credential."""
    address = settings.search_api_url.strip() or environ.get(ADDRESS_VARIABLE, "").strip()
    token = environ.get(settings.search_auth_env, "").strip()
    if not address:
        raise ConfigError(
            f"env.search_mode is custom_search, but no search service is named: set env.search_api_url or the "
            f"environment variable {ADDRESS_VARIABLE}."
        )
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"env.search_api_url: {address!r} is no address of the form https://host/path.")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ConfigError(
            f"env.search_api_url: {parts.hostname} would be sent the credential unencrypted; use https:// (http:// is "
            f"allowed for this machine only)."
        )
    if not token:
        raise ConfigError(
            f"env.search_mode is custom_search, but the environment variable {settings.search_auth_env} with the "
            f"search service's credential is not set (env.search_auth_env names the variable)."
        )
    limits = (settings.search_provider, settings.search_max_num_results, settings.search_timeout_seconds)
    return WebSearch(address, token, *limits)


def _unreachable() -> type[Exception]:
    import httpx2

    return httpx2.TransportError


def _results(answer: Any) -> list[Any]:
    """The list of results in an answer, wherever it usually stands."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer, Mapping):
        for name in _LISTS:
            if isinstance(answer.get(name), list | Mapping) and answer[name]:
                return _results(answer[name])
    return []


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((" ".join(str(entry[name]).split()) for name in names if entry.get(name)), "")
