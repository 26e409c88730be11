"""A chat model behind an HTTP endpoint, asked through the official `openai` package."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import CallTimeout, ModelError, PassingError, PermanentError
from skillopt_kernel.interfaces import Finding
from skillopt_kernel.models.asking import DEFAULT_MAX_TOKENS
from skillopt_kernel.models.requests import ChatReply, ChatRequest

from skillopt_lib_chat import responses, wire
from skillopt_lib_chat.client import OpenClient, open_client, timeouts
from skillopt_lib_chat.failures import error_inside, failure, malformed
from skillopt_lib_chat.options import NO_KEY, ChatOptions

if TYPE_CHECKING:
    import httpx2

SECONDS_OF_CHECK = 15.0

_PROTOCOLS = {"chat_completions": wire, "responses": responses}


class OpenAIChatModel:
    """Implements `ChatModel` for Chat Completions and Responses. Used from many threads at once.

    The client is opened at the first call and closed by `close`. It neither retries nor limits connections:
    the kernel does both.
    """

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self.model = options.model
        self._protocol: Any = _PROTOCOLS[options.api]
        self._open: OpenClient | None = None
        self._closed = False
        self._lock = threading.Lock()

    @property
    def max_tokens(self) -> int | None:
        """The most tokens that any reply may have, as far as that is set."""
        return self.options.max_tokens

    def complete(self, request: ChatRequest) -> ChatReply:
        """One request, one reply; raises `ModelError` of the kind that `failures` tells apart.

        The time is the setting's or what is left until the deadline, whichever is less, and holds for the whole
        answer, however slowly it comes.
        """
        seconds = self.options.timeout_seconds
        if request.deadline is not None:
            seconds = min(seconds, request.deadline - time.monotonic())
        if seconds <= 0:
            raise CallTimeout("the time of the call was over before it was made")
        content_type, body = self._post(self._protocol.request_body(request, self.options), seconds)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise malformed(content_type, "it is not JSON", self.options) from None
        error = error_inside(answer, self.options)
        if error is not None:
            raise error
        try:
            return self._protocol.read_reply(answer, request)  # type: ignore[no-any-return]
        except PassingError as error:
            raise malformed(content_type, str(error), self.options) from None

    def check(self) -> list[Finding]:
        """Whether the endpoint answers, takes the key and lists the model. Asks `GET /models`: spends nothing."""
        findings: list[Finding] = []
        if not self.options.api_key and not self.options.needs_key and self.options.token is None:
            findings.append(("warning", f"no key is set; {NO_KEY!r} is sent, as local servers allow"))
        limit = self.options.max_tokens
        if self.options.role == "optimizer" and limit is not None and limit < DEFAULT_MAX_TOKENS:
            findings.append(
                ("warning", f"replies are cut off at {limit} tokens, and the optimizer's may need {DEFAULT_MAX_TOKENS}")
            )
        try:
            listed = self._list_models()
        except PermanentError as error:
            # Not every server lists its models; then only a call can tell.
            if "HTTP status 404" in str(error) or "HTTP status 405" in str(error):
                return [*findings, ("warning", f"{self.options.address} answers, but does not list its models")]
            return [*findings, ("error", str(error))]
        except ModelError as error:
            return [*findings, ("error", f"{error}.")]
        if not self.options.lists_models:
            findings.append(("ok", f"{self.options.address} answers; whether it has {self.model!r}, only a call tells"))
        elif listed and self.model not in listed:
            shown = ", ".join(sorted(listed)[:10])
            findings.append(
                ("warning", f"{self.options.address} does not list the model {self.model!r}; it has {shown}")
            )
        else:
            findings.append(("ok", f"{self.options.address} answers and serves {self.model!r}"))
        return findings

    def close(self) -> None:
        """Close the client and its connections: calls in flight and further ones end with `PassingError` at once."""
        with self._lock:
            opened, self._open, self._closed = self._open, None, True
        if opened is not None:
            opened.connections.close()

    # The client ------------------------------------------------------------------------------------------------

    def _post(self, body: dict[str, Any], seconds: float) -> tuple[str, bytes]:
        opened = self._opened()
        content = json.dumps({**body, **self.options.extra_body}, ensure_ascii=False).encode(errors="replace")
        request = opened.request(content, seconds)
        with _Translated(self, seconds), opened.deadlines.until(time.monotonic() + seconds):
            response = opened.connections.send(request)
            if not response.is_success:
                raise self._turned_away(response)
            return response.headers.get("content-type", ""), response.content

    def _list_models(self) -> set[str]:
        opened = self._opened()
        with _Translated(self, SECONDS_OF_CHECK), opened.deadlines.until(time.monotonic() + SECONDS_OF_CHECK):
            raw = opened.client.models.with_raw_response.list(timeout=timeouts(SECONDS_OF_CHECK)).text
        try:
            listed = json.loads(raw)["data"]
            return {str(entry["id"]) for entry in listed}
        except (ValueError, KeyError, TypeError):
            raise malformed("", "its list of models cannot be read", self.options) from None

    def _opened(self) -> OpenClient:
        with self._lock:
            if self._closed:
                raise PassingError("the model's connections were closed")
            if self._open is None:
                self._open = open_client(self.options)
            return self._open

    def _turned_away(self, response: httpx2.Response) -> ModelError:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return failure(response.status_code, response.text, headers, self.options)

    def _timed_out(self, seconds: float) -> CallTimeout:
        return CallTimeout(f"no reply from {self.options.address} within {seconds:.3g} s")


class _Translated:
    """Turns what the client raises into the kernel's errors, without the original: its text may hold a header."""

    def __init__(self, model: OpenAIChatModel, seconds: float) -> None:
        self._model, self._seconds = model, seconds

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None or isinstance(error, ModelError) or not isinstance(error, Exception):
            return
        raise self._translate(error) from None

    def _translate(self, error: Exception) -> Exception:
        import httpx2
        import openai

        options = self._model.options
        if isinstance(error, openai.APIStatusError):
            return self._model._turned_away(error.response)
        if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
            return self._model._timed_out(self._seconds)
        if self._model._closed:
            return PassingError("the model's connections were closed")
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
            cause = error.__cause__ or error if isinstance(error, openai.APIConnectionError) else error
            reason = f"{type(cause).__name__}: {cause}".rstrip(": ")
            if "CERTIFICATE_VERIFY_FAILED" in reason:
                return PermanentError(
                    f"the certificate of {options.address} cannot be verified. Install its issuer's certificate and "
                    f"name it in SSL_CERT_FILE, or check {options.setting('base_url')}."
                )
            lost = PassingError(f"no connection to {options.address} ({reason})")
            lost.charged = not isinstance(cause, httpx2.ConnectError)  # it may have been sent and answered
            return lost
        return error
