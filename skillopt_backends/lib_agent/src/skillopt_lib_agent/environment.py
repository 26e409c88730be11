"""The variables that a program is given: an allow-list, so that no key and no switch of the operator's gets in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

PLAIN = ("PATH", "TZ", "TERM", "NO_COLOR", "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS")
"""What programs need to run at all."""

NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
"""How the operator's network is reached."""

PINNED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONIOENCODING": "utf-8",
    "CI": "1",
    "NO_COLOR": "1",
}
"""UTF-8 on every pipe, and nobody who answers questions."""

FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
}
"""Where programs keep what is the user's, below the private home."""

NEVER = frozenset({"COPILOT_ALLOW_ALL", "IS_SANDBOX", "CLAUDE_CODE_SANDBOXED", "CODEX_SANDBOX_NETWORK_DISABLED"})
"""Switches that allow everything, or say that a sandbox is there already: never handed on, whoever names them."""


def names_of_variables(_: object, attribute: attrs.Attribute[Any], value: Iterable[str]) -> None:
    """A check for a setting that names variables to hand on: raises `ValueError` for one that may not be."""
    for name in value:
        if not name or "=" in name or name != name.strip():
            raise ValueError(f"must name environment variables, not {name!r}")
        if name.upper() in NEVER:
            raise ValueError(f"must not hand on {name}, which allows a program everything or hides that it may do so")


def variables(
    home: Path,
    scratch: Path,
    *,
    passed: Iterable[str] = (),
    given: Mapping[str, str] | None = None,
    operator: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables of one program.

    home, scratch  private folders: HOME and where temporary files go
    passed   names that are handed on beside `PLAIN` and `NETWORK`, such as the one the program signs in with
    given    variables that this program gets, whatever the operator has
    operator the operator's variables; `None`: those of this process
    """
    source = os.environ if operator is None else operator
    kept = {name: source[name] for name in (*PLAIN, *NETWORK, *passed) if source.get(name) and name not in NEVER}
    private = dict.fromkeys(("HOME", "USERPROFILE"), str(home))
    private |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(scratch))
    private |= {name: str(home / folder) for name, folder in FOLDERS.items()}
    return {**kept, **PINNED, **private, **(given or {})}
