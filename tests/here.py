"""A project whose commands run in the test's own process, which loads the libraries only once."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from attrs import frozen
from skillopt_kernel.cli.main import main
from skillopt_testkit.project import Finished, Project


@frozen
class Here(Project):
    """As a project; what `PYTHONPATH` in its environment names can be imported."""

    def run(self, *arguments: str | Path, timeout: float = 0, env: Mapping[str, str] | None = None) -> Finished:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            for path in filter(None, self.environment.get("PYTHONPATH", "").split(os.pathsep)):
                patch.syspath_prepend(path)
            handlers = logging.root.handlers[:]
            logging.root.handlers[:] = []
            try:
                code = main([str(argument) for argument in arguments])
            finally:
                logging.root.handlers[:] = handlers
        return Finished(code, out.getvalue(), err.getvalue(), 0.0)
