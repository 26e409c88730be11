"""One job: files and skill laid into a fresh folder, the program run in it, its answer and files taken from it."""

from __future__ import annotations

import json
from pathlib import Path

from attrs import frozen
from skillopt_kernel.errors import ModelError, PermanentError
from skillopt_kernel.interfaces import Finding
from skillopt_kernel.models.requests import AgentJob, AgentResult
from skillopt_kernel.records import Usage
from skillopt_kernel.skill import SkillDocument
from skillopt_lib_agent.events import Events, read_events, text_of
from skillopt_lib_agent.failures import Program, failure, malformed
from skillopt_lib_agent.launcher import Launcher
from skillopt_lib_agent.process import Finished
from skillopt_lib_agent.workspace import Place, collect, fresh_place

from skillopt_backend_cursor_exec.events import Session, read_session
from skillopt_backend_cursor_exec.settings import CursorExecSettings

CURSOR = Program(
    name="Cursor's agent",
    command="cursor-agent",
    setting="model.cursor_exec_path",
    install="curl https://cursor.com/install -fsS | bash",
    sign_in="Set CURSOR_API_KEY to a key from Cursor's dashboard.",
    upgrade="cursor-agent update",
)

NEEDED = ("--print", "--output-format", "--trust", "--workspace", "--sandbox", "--mode", "--force", "--model")

RULE = ".cursor/rules/trained-skill.mdc"
"""Where Cursor looks for rules. One that always applies stands in the agent's instructions from the start."""

PERMISSIONS = {
    "version": 1,
    "editor": {"vimMode": False},
    "permissions": {"allow": ["Read(**)"], "deny": ["Mcp(*:*)", "WebFetch(*)"]},
}
"""The program's whole configuration: reading in its folder; no servers, no web."""

UNKNOWN = Usage(calls=1, unknown_calls=1)


@frozen
class CursorHarness:
    """Implements `AgentHarness`. Used from many threads at once. A limit of turns is not sent: there is none."""

    model: str
    _settings: CursorExecSettings
    _launcher: Launcher

    @classmethod
    def of(cls, settings: CursorExecSettings, model: str, *, require_isolation: bool = False) -> CursorHarness:
        """From the backend's settings. Starts nothing."""
        key = settings.api_key.strip()
        launcher = Launcher(
            CURSOR,
            settings,
            settings.path,
            needed=NEEDED,
            require_isolation=require_isolation,
            credentials=filter(None, [key]),
        )
        return cls(model, settings, launcher)

    def run(self, job: AgentJob) -> AgentResult:
        """The job's answer: what the agent said after its last tool call. What it used is unknown."""
        if job.edits and self._settings.sandbox == "disabled":
            raise PermanentError(
                "this environment has Cursor's agent change files and run commands, and model.cursor_exec_sandbox is "
                "'disabled'. Set it to 'enabled', or let the agent do tasks that need no files changed."
            )
        with fresh_place() as place, self._launcher.laid(place, job):
            placed = _place_rule(place.workspace, job.skill)
            _configure(place.home)
            key = self._settings.api_key.strip()
            done, isolated = self._launcher.run(
                place,
                self._arguments(job, place),
                stdin=job.prompt,
                deadline=self._launcher.deadline(job.deadline),
                given={"CURSOR_API_KEY": key} if key else {},
            )
            events = read_events(done.stdout)
            session = read_session(events)
            if (failed := self._failure(session, events, done)) is not None:
                raise failed
            files = collect(place.workspace, job.collect, placed)
        return AgentResult(session.answer, files, session.trajectory, UNKNOWN, isolated)

    def check(self) -> list[Finding]:
        """What is wrong with program and settings, before anything is spent."""
        findings = self._launcher.check()
        if not self._settings.api_key.strip():
            findings.append(
                ("error", f"CURSOR_API_KEY is not set, and without it the agent cannot sign in. {CURSOR.sign_in}")
            )
        return findings

    def close(self) -> None:
        """End the jobs that run."""
        self._launcher.close()

    def _arguments(self, job: AgentJob, place: Place) -> list[str]:
        arguments = ["--print", "--output-format", "stream-json", "--trust", "--workspace", str(place.workspace)]
        arguments += ["--sandbox", self._settings.sandbox, *(["--force"] if job.edits else ["--mode", "ask"])]
        return [*arguments, *(["--model", self.model] if self.model else [])]

    def _failure(self, session: Session, events: Events, done: Finished) -> ModelError | None:
        """The error that the run stands for; `None`: it has its answer, which may be empty."""
        redactor = self._launcher.redactor
        if session.failed:
            told = text_of((session.result or {}).get("result")) or _plain(done.stderr)
            return failure(CURSOR, told, redactor)
        if done.code == 0 and session.result is not None:
            return None
        said = f"{_plain(done.stderr)}\n{events.text}".strip()
        if said and (done.code != 0 or not events.items):  # some errors are told in plain words, with exit code 0
            found = failure(CURSOR, said, redactor)
            unknown_option = said.startswith("error: unknown option")
            return PermanentError(f"{found} Bring it up to date: `{CURSOR.upgrade}`.") if unknown_option else found
        return malformed(CURSOR, "they end before their result", redactor, said)


def _place_rule(workspace: Path, skill: str) -> list[str]:
    """Write the skill as a rule, unless it is blank, and return the names that are not the job's own."""
    body = SkillDocument.parse(skill).body.strip()
    if not body:
        return []
    path = workspace / RULE
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "---\ndescription: How to do the task at hand\nalwaysApply: true\n---"
    path.write_bytes(f"{head}\n\n{body}\n".encode())
    return [RULE]


def _configure(home: Path) -> None:
    """Write the program's private configuration, where it looks for it with and without XDG's variables."""
    for folder in (home / ".cursor", home / ".config" / "cursor"):
        folder.mkdir(parents=True)
        (folder / "cli-config.json").write_text(json.dumps(PERMISSIONS), "utf-8")


def _plain(stderr: str) -> str:
    """The lines that are no events: some versions print those there as well."""
    return "\n".join(line for line in stderr.splitlines() if not line.lstrip().startswith("{"))
