"""What went wrong in a session of Copilot, as the kernel's errors.

The program says it in its events and exits with 1; what keeps it from beginning at all it says in plain words.
"""

from __future__ import annotations

import json

from skillopt_kernel.errors import CallTimeout, ModelError, PassingError, PermanentError
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.events import Events, text_of
from skillopt_lib_agent.failures import Program, failure, malformed, quoted
from skillopt_lib_agent.process import Finished

from skillopt_lib_copilot.session import Session

STATUS = {
    "authentication": 401,
    "authorization": 403,
    "policy": 403,
    "quota": 402,
    "rate_limit": 429,
    "context_limit": 413,
}
"""`errorType` of a `session.error` -> the HTTP status that means the same, for one that tells none."""

NO_MODEL = (
    "Copilot asks an endpoint of your own, and no model is named. Name one in `model.optimizer` or `model.target`."
)

_NOT_SIGNED_IN = ("No authentication information found", "Authentication failed", "/login")
_TOO_LONG = ("rejected the prompt as too long", "exceeds the model's prompt budget")
_NO_ANSWER = "No response was returned"


def failure_of(
    session: Session, events: Events, done: Finished, program: Program, redactor: Redactor
) -> ModelError | None:
    """The error that a session stands for which ended by itself; `None`: it has its answer, which may be empty."""
    if session.error is None and session.ended and session.exit_code == 0 and done.code == 0:
        return None
    if _is_empty(session):
        return None
    if session.error is not None or session.failure is not None:
        return _of_events(session, program, redactor)
    said = f"{done.stderr}\n{events.text}".strip()
    if "terminated by signal" in said:  # so says the launcher that npm installs, and goes on
        error = PassingError(f"{program.name} was ended by a signal before it had answered{quoted(said, redactor)}.")
        error.charged = True
        return error
    if not events.items and done.code != 0 and said:
        return _of_words(said, program, redactor)
    return malformed(program, "they end before their result", redactor, said)


def out_of_time(session: Session, error: CallTimeout, program: Program, redactor: Redactor) -> ModelError:
    """The error for a session whose time was over: what its last call failed with, if it was waiting to ask again."""
    if session.failure is None:
        return error
    found = _of_events(session, program, redactor)
    return found if isinstance(found, PassingError) else error


def _is_empty(session: Session) -> bool:
    """Whether the model was asked and had nothing to say, which the program takes for an error."""
    return session.messages > 0 and session.failure is None and not session.answer and _status(session) is None


def _of_events(session: Session, program: Program, redactor: Redactor) -> ModelError:
    failed, error = session.failure or {}, session.error or {}
    message, code = _endpoint_error(text_of(failed.get("errorMessage")))
    told = text_of(error.get("message"))
    # The program's own sentence mostly holds the endpoint's.
    said = " ".join(word for word in (told, "" if message in told else message, code) if word)
    # Instructions that are too long by themselves keep the program from asking at all, and it does not say why.
    too_long = any(words in said for words in _TOO_LONG) or (told.startswith(_NO_ANSWER) and not session.asked)
    status = 413 if too_long else _status(session)
    if status is None and failed.get("failureKind") == "transport":
        reason = quoted(message or said, redactor)
        return PassingError(f"{program.name} lost its connection to the model, or got no usable reply{reason}.")
    return failure(program, said, redactor, status)


def _endpoint_error(text: str) -> tuple[str, str]:
    """Message and code in the JSON of an endpoint's error; the text itself where it is none."""
    try:
        error = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    if isinstance(error, str):
        return error, ""
    return (text_of(error.get("message")), text_of(error.get("code"))) if isinstance(error, dict) else (text, "")


def _status(session: Session) -> int | None:
    for each in (session.failure, session.error):
        status = (each or {}).get("statusCode")
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    return STATUS.get(text_of((session.error or {}).get("errorType")))


def _of_words(said: str, program: Program, redactor: Redactor) -> ModelError:
    if any(words in said for words in _NOT_SIGNED_IN):
        return failure(program, said, redactor, 401)
    if "require an explicit model" in said:
        return PermanentError(NO_MODEL)
    if said.startswith("error: "):  # its command line: a flag or a value that this version does not take
        return PermanentError(
            f"{program.name} does not take what it is called with{quoted(said, redactor)}. Install another version: "
            f"`{program.upgrade}`."
        )
    return failure(program, said, redactor)
