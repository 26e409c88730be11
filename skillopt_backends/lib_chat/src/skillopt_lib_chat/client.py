"""The `openai` client of one model: opened late, without retries, with a time limit for whole calls."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes

from attrs import frozen
from skillopt_kernel.errors import PermanentError

from skillopt_lib_chat.options import NO_KEY, ChatOptions

if TYPE_CHECKING:
    import httpx2
    import openai

    from skillopt_lib_chat.connections import Connections
    from skillopt_lib_chat.deadlines import Deadlines

CONNECT_SECONDS = 10.0
PUBLIC_API = "https://api.openai.com"


@frozen
class OpenClient:
    """An open client, with what a call is sent by: connections, address, headers, and a token in place of a key."""

    client: openai.OpenAI
    connections: Connections
    deadlines: Deadlines
    url: httpx2.URL
    headers: httpx2.Headers
    token: Callable[[], str] | None

    def request(self, content: bytes, seconds: float) -> httpx2.Request:
        """A call's request, to be sent by `connections` and answered within so many seconds.

        With the client's headers, but made here: what the client does to make a request and to read a reply, which is
        checked here anyway, takes longer than all the rest of a call.
        """
        import httpx2

        headers = self.headers
        if self.token is not None:
            headers = headers.copy()
            headers["Authorization"] = f"Bearer {self.token()}"
        extensions = {"timeout": timeouts(seconds).as_dict()}
        return httpx2.Request("POST", self.url, headers=headers, content=content, extensions=extensions)


def open_client(options: ChatOptions) -> OpenClient:
    """A client with its connections. Raises `PermanentError` when there is no key, or none that can be sent."""
    import httpx2
    import openai

    from skillopt_lib_chat.connections import Connections
    from skillopt_lib_chat.deadlines import Deadlines

    key, deadlines = usable_key(options), Deadlines()
    # No other place than the address that is set is sent Azure's key, which is in a header that a client passes on.
    connections = Connections(deadlines, follow_redirects=not options.azure_api_version)
    common: dict[str, Any] = {
        "admin_api_key": "",
        "base_url": options.base_url,
        "max_retries": 0,
        "timeout": timeouts(options.timeout_seconds),
        "http_client": connections.open(),
    }
    client: openai.OpenAI
    if options.azure_api_version:
        credential = {"api_key": key} if options.token is None else {"azure_ad_token_provider": options.token}
        client = openai.AzureOpenAI(api_version=options.azure_api_version, **credential, **common)
    else:
        client = openai.OpenAI(api_key=options.token or key, **common)
    if not options.address.startswith(PUBLIC_API):
        # From OPENAI_ORG_ID and OPENAI_PROJECT_ID: no business of another provider.
        client.organization = client.project = None
    # Without what the client tells of this machine, and without what it marks as not to be sent, which is no text.
    told = {**client.default_headers, **client.auth_headers}
    sent = {
        name: value for name, value in told.items() if isinstance(value, str) and not name.startswith("X-Stainless")
    }
    url, headers = _url(options), httpx2.Headers(sent)
    if url.userinfo:  # a login in the address, which a client would send so, in place of the key
        headers["Authorization"] = f"Basic {base64.b64encode(unquote_to_bytes(url.userinfo)).decode()}"
    return OpenClient(client, connections, deadlines, url, headers, options.token)


def _url(options: ChatOptions) -> httpx2.URL:
    """Where a call goes: at a dated version of Azure, Chat Completions are asked of the deployment itself."""
    import httpx2

    path = "/responses" if options.api == "responses" else "/chat/completions"
    if not options.azure_api_version:
        return httpx2.URL(options.base_url + path)
    if options.api == "chat_completions":
        path = f"/deployments/{quote(options.model, safe='')}{path}"
    return httpx2.URL(options.base_url + path, params={"api-version": options.azure_api_version})


def usable_key(options: ChatOptions) -> str:
    """The key as it is sent. Raises `PermanentError` for one that is missing and needed, or that no header can hold."""
    key = options.api_key.strip()
    if not key and options.needs_key and options.token is None:
        raise PermanentError(f"there is no key for {options.address}. Set one in {options.setting('api_key')}.")
    if not key.isascii() or not key.isprintable():
        raise PermanentError(
            f"the key for {options.address} holds a character that no key has (a line break, or one outside ASCII). "
            f"Set it anew in {options.setting('api_key')}."
        )
    return key or NO_KEY


def timeouts(seconds: float) -> Any:
    """The client's own limits for a call of so many seconds: for connecting, and for each piece."""
    import httpx2

    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
