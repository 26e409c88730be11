"""Every error that the kernel raises on purpose, and those that a backend or an environment raises.

An error's text is a sentence for the person who reads it: what happened, where, and what to do.
"""


class SkillOptError(Exception):
    """The base of all errors that are shown to the user as a sentence, without a traceback.

    `exit_code` is what the command line ends with: 2 for a user's error, 3 for a run that stopped before its
    end with its state saved, 4 for one that stopped so at a limit of its budget.
    """

    exit_code = 2


def told(error: BaseException) -> str:
    """What is shown of an error: its sentence and the notes that were added on its way."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


class ConfigError(SkillOptError):
    """The configuration cannot be used. Each problem is one sentence with its file, line and key, told once."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(dict.fromkeys(problems))  # each role may find the same one
        super().__init__("\n".join(self.problems))


class DataError(SkillOptError):
    """A data file or split cannot be used: missing, malformed, overlapping or too small."""


class RunDirectoryError(SkillOptError):
    """The run directory cannot be used: locked, of another configuration, unreadable or not writable."""


class RefuseRun(SkillOptError):
    """Raised by a plugin in `skillopt_configure` to refuse a run, with the reason."""


class HookError(SkillOptError):
    """A hook implementation raised. Names the plugin and the hook; the saved state is intact."""

    def __init__(self, hook: str, plugin: str, cause: BaseException) -> None:
        self.hook, self.plugin = hook, plugin
        super().__init__(
            f"the plugin {plugin!r} failed in the hook {hook}: {type(cause).__name__}: {cause}. The state of the run "
            f"is saved; correct or disable the plugin and run the same command again."
        )


class StoppedEarly(SkillOptError):
    """The run stopped in order before its end; its state is saved and the same command goes on with it."""

    exit_code = 3


class BudgetSpent(StoppedEarly):
    """A request does not fit what is left of a limit of the budget; the run ends in order."""

    exit_code = 4


class ModelError(Exception):
    """The base of what a backend raises for one call.

    `usage`: what the call used all the same (a `Usage`), where the provider told and the backend sets it. `charged`:
    nobody knows what it used, and it may have been as much as an answered one; a budget counts it as reserved.
    """

    usage: object = None
    charged = False


class PassingError(ModelError):
    """The call failed for a reason that passes: rate limit, server error, lost connection, no reply in time.

    `retry_after`: seconds that the endpoint asked to wait, `None` when it did not say. `overloaded`: it has more calls
    than it can serve, and gets fewer at once from now on; so it is wherever it asks to wait.
    """

    overloaded = False

    def __init__(self, message: str, retry_after: float | None = None, *, overloaded: bool = False) -> None:
        self.retry_after = retry_after
        if overloaded or retry_after is not None:
            self.overloaded = True
        super().__init__(message)


class CallTimeout(PassingError):
    """No reply within the time that the call was given."""

    overloaded = charged = True


class PermanentError(ModelError, SkillOptError):
    """No later call can succeed: no key, unknown model, not permitted. The message says what to do."""


class RejectedRequest(ModelError):
    """The endpoint rejected this request as invalid; another one may be taken. It is not tried again."""


class ContextTooLong(ModelError):
    """The request does not fit the model's context. Neither permanent nor passing."""


class RefusedError(ModelError):
    """The model or its provider refused to answer (content filter, policy)."""


class Pending(ModelError, StoppedEarly):
    """The answer will be brought later by a person or another program.

    The run goes on with all that does not hang on it, stops in order, and asks again when it is resumed.
    """


class Cancelled(Exception):
    """Raised from a target's call after the attempt's deadline or the run's stop. Environments let it pass."""


class EnvironmentFailure(Exception):
    """An environment could not attempt or score a task through no fault of the target."""


class UnusableReply(ModelError):
    """An optimizer's reply held no usable JSON, the reminder included. `head` is the start of the last reply."""

    def __init__(self, reason: str, head: str) -> None:
        self.reason, self.head = reason, head
        super().__init__(f"{reason}; the reply began: {head!r}")
