"""The simulated world as a model behind HTTP: every stage of every update mode is answered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import define, field
from skillopt_backend_simulated.backend import SimulatedBackend
from skillopt_backend_simulated.loading import load_world
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_testkit.project import Project
from skillopt_testkit.servers import Reply

MARKS = {
    '"slow_update_content"': "slow_update", '"meta_skill_content"': "meta_skill", '"selected_indices"': "ranking",
    '"learning_rate"': "lr_autonomous", '"batch_size"': "analyst", "You are the editor": "rewrite",
}  # fmt: skip
"""What a system prompt asks for -> the stage; a merge is what has none of them."""


def stage_of(system: str) -> str:
    return next((stage for mark, stage in MARKS.items() if mark in system), "merge")


@define
class Served:
    """The simulated world as a model behind HTTP. Keeps what the optimizer was asked, by stage, and its replies."""

    backend: SimulatedBackend
    asked: list[tuple[str, str, str, Any]] = field(factory=list)

    @classmethod
    def of(cls, project: Project) -> Served:
        path = project.folder / "world.yaml"
        return cls(SimulatedBackend(SimulatedSettings(world=path), load_world(path)))

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        messages = tuple(Message(message["role"], message["content"]) for message in body["messages"])
        role, stage = body["model"], stage_of(messages[0].text)
        text = self.backend.open_chat(role).complete(ChatRequest(messages, stage=stage)).text
        if role == "optimizer":
            self.asked.append((stage, messages[0].text, messages[1].text, json.loads(text)))
        return Reply(text)

    def systems(self, stage: str) -> list[str]:
        return [system for asked, system, _, _ in self.asked if asked == stage]

    def users(self, stage: str) -> list[str]:
        return [user for asked, _, user, _ in self.asked if asked == stage]

    def replies(self, stage: str) -> list[Any]:
        return [reply for asked, _, _, reply in self.asked if asked == stage]

    def budgets_told(self, stage: str = "analyst") -> list[str]:
        """The budget that each request of the stage names, in order."""
        return [found[1] for text in self.systems(stage) for found in re.finditer(r"budget: ([\w ]+)\.", text)]
