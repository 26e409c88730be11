"""The public conformance suite of backends, with somebody who answers the one question that it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import Pending
from skillopt_kernel.interfaces import DriverContext
from skillopt_testkit import BackendConformance


class TestHandoff(BackendConformance):
    name = "handoff"

    @pytest.fixture
    def driver(self, settings: Any, context: DriverContext, tmp_path: Path) -> Any:
        from skillopt_backend_handoff.backend import make_backend

        made = make_backend(settings, context)
        made.enter(tmp_path)
        with pytest.raises(Pending):
            made.open_chat(self.role).complete(self.request())
        (question,) = (tmp_path / "handoff").glob("*.md")
        question.with_suffix(".answer.md").write_text("ok", encoding="utf-8")
        return made
