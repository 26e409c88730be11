"""What went wrong in a program, told apart as the kernel wants it: passing, permanent, rejected, too long, refused.

A program's own words are quoted without credentials and cut to a sentence; the marks of an error are looked for in the
whole text before that.
"""

from __future__ import annotations

import re

from attrs import frozen
from skillopt_kernel.errors import (
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.store.patterns import clipped
from skillopt_kernel.store.redaction import Redactor

LONGEST_DETAIL = 300

_STATUS = re.compile(r"(?:\bstatus(?: code)?:?|\bHTTP(?:/[\d.]+)?|\bAPI Error:)\s*\(?(\d{3})\b", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:try again|retry)(?: your request)?(?:[ -]after| in):?\s*(\d+(?:\.\d+)?)\s*(ms|m?s)?", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context_length_exceeded|prompt is too long|input is too long|maximum context length"
    r"|(exceeds?|ran out of|outgrew|fit)\b.{0,40}\bcontext (window|length)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content_policy|content_filter|content (filtering )?policy|usage polic(y|ies)|cyber_policy", re.IGNORECASE
)
_SIGNED_OUT = re.compile(
    r"not (logged|signed) in|log ?in required|please (run )?/?log ?in|invalid api key|invalid_api_key|missing bearer"
    r"|no api key|authentication (failed|required|error)|unauthorized|missing environment variable|\blog in\b",
    re.IGNORECASE,
)
_NO_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low|billing", re.IGNORECASE
)
_RATE = re.compile(r"rate.?limit|too many requests|overloaded", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|model .{0,80}(does not exist|not found|not supported|not available)", re.IGNORECASE
)
_PASSING = re.compile(
    r"connection|connect\b|timed? ?out|stream (disconnected|closed)|network|server_error|internal error|temporar"
    r"|exceeded retry limit|socket|ECONN|reconnect|high demand",
    re.IGNORECASE,
)


@frozen
class Program:
    """A program as messages speak of it.

    name     "Codex"; command: what is run, "codex"
    setting  the key that names its path; model_setting: the one that names its model
    install  the line that installs it; sign_in: what to do when it is not signed in, as a sentence
    upgrade  the line that brings a newer version
    """

    name: str
    command: str
    setting: str
    install: str
    sign_in: str
    model_setting: str = "model.target"
    upgrade: str = ""


def failure(program: Program, said: str, redactor: Redactor, status: int | None = None) -> ModelError:
    """The error that a program's words (and the HTTP status, where it tells one) stand for.

    What cannot be told apart is taken to concern this one job only (`RejectedRequest`).
    """
    found = status if status is not None else status_in(said)
    detail = quoted(said, redactor)
    who = f"{program.name} failed" + (f" (HTTP status {found})" if found else "")
    if found not in (401, 403, 429) and (found == 413 or _TOO_LONG.search(said)):
        return ContextTooLong(f"{who}: the job does not fit the model's context{detail}.")
    if (found is None or found < 500) and _REFUSED.search(said):
        return RefusedError(f"{who}: the model's provider refused the job by its policy{detail}.")
    if found == 402 or (found in (None, 403, 429) and _NO_QUOTA.search(said)):
        return PermanentError(f"{who}: its account has no credit or quota left{detail}. Add credit.")
    if found == 401 or (found is None and _SIGNED_OUT.search(said)):
        # The endpoint's words are left out: some repeat parts of a rejected key.
        return PermanentError(f"{program.name} is not signed in, or its key was rejected. {program.sign_in}")
    if found == 403:
        return PermanentError(f"{who}: the account may not use this model{detail}. {program.sign_in}")
    if found == 404 or (found in (None, 400) and _NO_MODEL.search(said)):
        return PermanentError(
            f"{who}: its endpoint does not know the model{detail}. Check `{program.model_setting}` and the endpoint."
        )
    if found == 429 or (found is None and _RATE.search(said)):
        return PassingError(f"{who}: too many requests{detail}.", wait_in(said), overloaded=True)
    if found in (408, 409, 425) or (found or 0) >= 500 or (found is None and _PASSING.search(said)):
        return PassingError(f"{who}: its endpoint could not answer{detail}.", overloaded=found in (503, 529))
    return RejectedRequest(f"{who}{detail or ' and did not say why'}.")


def killed(program: Program, code: int, redactor: Redactor, said: str) -> PassingError:
    """The error for a program that a signal ended, before it had an answer."""
    error = PassingError(f"{program.name} was ended by signal {-code} before it had answered{quoted(said, redactor)}.")
    error.charged = True
    return error


def malformed(program: Program, reason: str, redactor: Redactor, said: str = "") -> PassingError:
    """The error for output that is not what the program prints."""
    error = PassingError(f"{program.name} printed something else than its events: {reason}{quoted(said, redactor)}.")
    error.charged = True
    return error


def status_in(text: str) -> int | None:
    """The HTTP status that a text tells, such as "unexpected status 401 Unauthorized"."""
    found = [int(each) for each in _STATUS.findall(text) if 400 <= int(each) < 600]
    return found[-1] if found else None


def wait_in(text: str) -> float | None:
    """The seconds that a text asks to wait, such as "try again in 20s"."""
    found = _WAIT.search(text)
    return float(found[1]) * (0.001 if found[2] == "ms" else 1.0) if found else None


def quoted(said: str, redactor: Redactor, length: int = LONGEST_DETAIL) -> str:
    """ ": " and the words on one line, without credentials, not too long; "" where nothing was said."""
    text = " ".join(said.split())
    # Before it is clipped: half a key would not be found.
    return f": {clipped(redactor.diagnostics(text), length).rstrip('.')}" if text else ""
