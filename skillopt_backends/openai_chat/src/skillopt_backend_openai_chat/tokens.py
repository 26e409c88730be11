"""Tokens of Azure in place of keys: from `azure-identity` where it is installed, else from the program `az`."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from attrs import field, frozen
from skillopt_kernel.errors import PassingError, PermanentError

from skillopt_backend_openai_chat.settings import OpenAIChatSettings

SECONDS_OF_AZ = 60
RENEWED_BEFORE = 300.0
"""Seconds before its end from which a token is not used any more."""

SIGN_IN = {
    "azure_cli": "Run `az login` with an account that has the role Cognitive Services OpenAI User at this resource.",
    "managed_identity": "Give the machine's managed identity the role Cognitive Services OpenAI User at this resource.",
}
"""Mode -> what to do when its token is rejected."""


@frozen
class Token:
    """A token and its end, in seconds since 1970."""

    text: str = field(repr=False)
    ends: float


class Tokens:
    """Hands out a token, fetched when one is first asked for and anew before it ends. Threads share it."""

    def __init__(self, fetch: Callable[[], Token]) -> None:
        self._fetch = fetch
        self._token: Token | None = None
        self._lock = threading.Lock()

    def __call__(self) -> str:
        """The token. Raises `PermanentError` with what to do when nobody is signed in."""
        with self._lock:
            if self._token is None or self._token.ends - time.time() < RENEWED_BEFORE:
                self._token = self._fetch()
            return self._token.text


def tokens_of(settings: OpenAIChatSettings) -> Tokens | None:
    """What gives the tokens of these settings; `None` where a key is used."""
    if settings.mode not in SIGN_IN:
        return None
    return Tokens(lambda: _fetch(settings))


def _fetch(settings: OpenAIChatSettings) -> Token:
    try:
        import azure.identity
    except ImportError:
        if settings.mode == "azure_cli":
            return _ask_az(settings.azure_openai_ad_scope)
        raise PermanentError(
            "azure_openai_auth_mode is managed_identity, which needs the package azure-identity. Run "
            "`pip install 'skillopt-backend-openai-chat[azure]'`."
        ) from None
    client_id = settings.azure_openai_managed_identity_client_id.strip()
    credential: Any
    if settings.mode == "azure_cli":
        credential = azure.identity.AzureCliCredential(process_timeout=SECONDS_OF_AZ)
    else:
        credential = azure.identity.ManagedIdentityCredential(client_id=client_id or None)
    try:
        found = credential.get_token(settings.azure_openai_ad_scope)
    except Exception as error:  # of several unrelated classes; each says in words what is wrong
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise PermanentError(f"Azure gave no token ({settings.mode}): {reason}. {SIGN_IN[settings.mode]}") from None
    return Token(found.token, float(found.expires_on))


def _ask_az(scope: str) -> Token:
    program = shutil.which("az")
    if program is None:
        raise PermanentError(
            "azure_openai_auth_mode is azure_cli, but the program `az` is not on the PATH. Install the Azure CLI and "
            "run `az login`, or set azure_openai_api_key (AZURE_OPENAI_API_KEY)."
        )
    resource = scope.removesuffix("/.default")
    command = [program, "account", "get-access-token", "--resource", resource, "--output", "json"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
            timeout=SECONDS_OF_AZ, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PassingError(f"`az account get-access-token` gave no token within {SECONDS_OF_AZ} s") from None
    if done.returncode != 0:
        reason = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise PermanentError(f"`az account get-access-token` failed: {reason.rstrip('.')}. {SIGN_IN['azure_cli']}")
    try:
        told = json.loads(done.stdout)
        return Token(str(told["accessToken"]), _end_of(told))
    except (ValueError, KeyError, TypeError):
        raise PermanentError(
            "`az account get-access-token` printed something else than a token. Update the Azure CLI (`az upgrade`)."
        ) from None


def _end_of(told: dict[str, Any]) -> float:
    """The token's end: `expires_on` in seconds, or, as older versions have it, `expiresOn` as local time."""
    if told.get("expires_on"):
        return float(told["expires_on"])
    return datetime.fromisoformat(told["expiresOn"]).timestamp()
