"""The Copilot CLI as a program: what it is called with, which variables it is given, where it keeps its package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import define, frozen
from skillopt_kernel.errors import CallTimeout
from skillopt_kernel.interfaces import Finding
from skillopt_kernel.records import Usage
from skillopt_lib_agent.events import read_events
from skillopt_lib_agent.failures import Program
from skillopt_lib_agent.launcher import Launcher, copied
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.workspace import Place

from skillopt_lib_copilot.failures import NO_MODEL, failure_of, out_of_time
from skillopt_lib_copilot.session import Session, read_session
from skillopt_lib_copilot.settings import CopilotSettings
from skillopt_lib_copilot.usage import read_usage

INSTALL = "npm install -g @github/copilot"

COPILOT = Program(
    name="Copilot",
    command="copilot",
    setting="model.copilot_exec_path",
    install=INSTALL,
    sign_in=(
        'Set COPILOT_GITHUB_TOKEN to a token with the permission "Copilot Requests", or model.copilot_exec_home to the '
        "home of a signed-in Copilot; for an endpoint of your own set COPILOT_PROVIDER_API_KEY."
    ),
    upgrade=f"{INSTALL}@latest",
)

OLDEST = "1.0.102"
"""The version with which this was tried; it has all that is needed."""

ALWAYS = (
    "--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none", "--no-auto-update",
    "--no-ask-user", "--disable-builtin-mcps", "--disallow-temp-dir",
)  # fmt: skip
"""Events as JSON, a whole reply at a time, nobody asked, nothing read but the workspace."""

NEEDED = (
    *(flag for flag in ALWAYS if flag.startswith("--")),
    "--available-tools",
    "--allow-tool",
    "--usage-output-file",
)

NO_TOOLS = "--available-tools=none"
"""An allow-list with a name that no tool has: an empty one would allow all."""

INSTRUCTIONS = "copilot-instructions.md"
"""Of a home, the file with the instructions of its owner. They stand whole in the system message of every session."""

SIGN_IN_FILE = "config.json"
"""Of a home, the file that Copilot manages by itself; settings, skills, instructions and servers lie in others."""

GITHUB_HOSTS = ("GH_HOST", "COPILOT_GH_HOST")


@frozen
class Ended:
    """A session that ended well. `isolated`: whether the program could see nothing but its own folders."""

    session: Session
    usage: Usage
    isolated: bool


@define(eq=False)
class Copilot:
    """The program as a backend runs it. Used from many threads at once."""

    settings: CopilotSettings
    launcher: Launcher

    @classmethod
    def of(cls, settings: CopilotSettings, shared: ProgramSettings, *, require_isolation: bool = False) -> Copilot:
        """From the settings of a backend. Starts nothing."""
        cache = cache_folder()
        given = {} if cache is None else {"COPILOT_CACHE_HOME": str(cache)}
        launcher = Launcher(
            COPILOT,
            shared,
            settings.copilot_exec_path,
            needed=NEEDED,
            oldest=OLDEST,
            require_isolation=require_isolation,
            credentials=settings.credentials,
            given=given | {"COPILOT_AUTO_UPDATE": "false"},
            readable=() if cache is None else (cache,),
        )
        return cls(settings, launcher)

    def run(
        self,
        place: Place,
        prompt: str,
        arguments: Sequence[str],
        *,
        instructions: str,
        model: str,
        deadline: float | None,
        max_tokens: int | None = None,
    ) -> Ended:
        """One session: the prompt answered in a place, with the tools that the arguments allow.

        instructions  for the system message; "": none but the program's own
        model       "": the program's own; deadline: `time.monotonic()` seconds
        max_tokens  of a reply; only an endpoint of the user's own is told
        Raises what stands for a session that went wrong, with its usage; an empty answer is none of that.
        """
        home = place.home / ".copilot"
        home.mkdir(mode=0o700)
        self._sign_in(home)
        if instructions.strip():
            (home / INSTRUCTIONS).write_bytes(instructions.encode())
        used = place.home / "usage.json"
        named = ["--model", model] if model else []
        try:
            done, isolated = self.launcher.run(
                place,
                [*ALWAYS, "--usage-output-file", str(used), *named, *arguments],
                stdin=prompt,
                deadline=self.launcher.deadline(deadline),
                passed=GITHUB_HOSTS,
                given=self._given(max_tokens),
            )
        except CallTimeout as error:
            printed = place.streams / "stdout"  # missing where the time was over before the program was started
            session = read_session(read_events(printed)) if printed.exists() else Session()
            raise out_of_time(session, error, COPILOT, self.launcher.redactor) from None
        events = read_events(done.stdout)
        session, usage = read_session(events), read_usage(used)
        failed = failure_of(session, events, done, COPILOT, self.launcher.redactor)
        if failed is not None:
            failed.usage = None if usage.unknown_calls else usage
            raise failed
        return Ended(session, usage, isolated)

    def check(self, model: str) -> list[Finding]:
        """What is wrong with program and settings, before anything is spent."""
        return [*self.launcher.check(), *self._check_sign_in(model)]

    def _check_sign_in(self, model: str) -> list[Finding]:
        told = self.settings
        if told.own_endpoint:
            if not model:
                return [("error", NO_MODEL)]
            return [("ok", f"Copilot asks {model} at {told.copilot_provider_base_url.strip()}")]
        home = told.signed_in_home
        if told.copilot_github_token.strip():
            return [("ok", "Copilot signs in with COPILOT_GITHUB_TOKEN")]
        if home is not None and (home / SIGN_IN_FILE).is_file():
            return [("ok", f"Copilot signs in as {home} is signed in")]
        if home is not None:
            return [("error", f"{home} (model.copilot_exec_home) is no home of Copilot: it has no {SIGN_IN_FILE}")]
        if handed := [name for name in self.launcher.settings.pass_variables if os.environ.get(name)]:
            return [("ok", f"Copilot may sign in with {', '.join(handed)}")]
        return [("error", f"nothing says how Copilot signs in. {COPILOT.sign_in}")]

    def close(self) -> None:
        """End every session that runs."""
        self.launcher.close()

    def _sign_in(self, home: Path) -> None:
        signed_in = self.settings.signed_in_home
        if signed_in is not None and not self.settings.own_endpoint:
            copied(signed_in / SIGN_IN_FILE, home, SIGN_IN_FILE)

    def _given(self, max_tokens: int | None) -> dict[str, str]:
        """The variables that say where the model is and who asks it."""
        told = self.settings
        given = {"COPILOT_GITHUB_TOKEN": told.copilot_github_token}
        if told.own_endpoint:
            given = {
                # Without it an endpoint of the user's own would still have GitHub asked for this and that.
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": told.copilot_provider_base_url,
                "COPILOT_PROVIDER_TYPE": told.copilot_provider_type,
                "COPILOT_PROVIDER_WIRE_API": told.copilot_provider_wire_api,
                "COPILOT_PROVIDER_API_KEY": told.copilot_provider_api_key,
                "COPILOT_PROVIDER_BEARER_TOKEN": told.copilot_provider_bearer_token,
                "COPILOT_PROVIDER_AZURE_API_VERSION": told.copilot_provider_azure_api_version,
                "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(told.copilot_provider_max_prompt_tokens or ""),
                "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": str(max_tokens or ""),
            }
        return {name: value.strip() for name, value in given.items() if value.strip()}


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Where the program unpacks its package, once for all runs: it is 235 MB, and a private home would get it anew.

    Behind a wall it is readable only. The program makes it. `None` where it cannot be made; then each session
    unpacks a copy of its own.
    """
    environ = os.environ if environ is None else environ
    base = environ.get("LOCALAPPDATA") if os.name == "nt" else environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path("~/.cache").expanduser()).absolute() / "skillopt" / "copilot"
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return folder if os.access(there, os.W_OK) else None
