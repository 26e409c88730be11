"""One job: files and skill laid into a fresh folder, a session with the tools that the job needs, files collected."""

from __future__ import annotations

from attrs import frozen
from skillopt_kernel.models.requests import AgentJob, AgentResult
from skillopt_kernel.skill import SkillDocument
from skillopt_lib_agent.workspace import collect, fresh_place
from skillopt_lib_copilot.program import Copilot

from skillopt_backend_copilot_exec.settings import CopilotExecSettings

READING = ("view", "grep", "glob")
WRITING = ("bash", "create", "edit")

GRANTED = ("--allow-tool=shell", "--allow-tool=write")
"""The kinds of use that need a permission, for jobs that may change files; reading in the own folder needs none."""


@frozen
class CopilotHarness:
    """Implements `AgentHarness`. Used from many threads at once.

    Copilot knows no limit of turns, so that a job's `max_turns` is not sent.
    """

    model: str
    copilot: Copilot
    _settings: CopilotExecSettings

    def run(self, job: AgentJob) -> AgentResult:
        """The job's answer: what the agent said after its last tool call.

        The skill stands in the system message from the start. As a skill of the folder it would be a name in a list
        until the agent asks for its text.
        """
        with fresh_place() as place, self.copilot.launcher.laid(place, job):
            effort = self._settings.copilot_exec_reasoning_effort
            ended = self.copilot.run(
                place,
                job.prompt,
                [*self._tools(job), *(["--reasoning-effort", effort] if effort else [])],
                instructions=SkillDocument.parse(job.skill).body.strip(),
                model=self.model,
                deadline=job.deadline,
            )
            files = collect(place.workspace, job.collect)
        session = ended.session
        return AgentResult(session.answer, files, session.trajectory, ended.usage, ended.isolated)

    def _tools(self, job: AgentJob) -> list[str]:
        if not job.edits:
            return [f"--available-tools={','.join(READING)}"]
        if self._settings.copilot_exec_allow_all_tools:
            return ["--allow-all-tools"]
        return [f"--available-tools={','.join((*READING, *WRITING))}", *GRANTED]
