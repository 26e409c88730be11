"""What was looked at and what came of it; an error of a driver becomes a finding, and the next thing is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from attrs import define, field, frozen
from skillopt_kernel.errors import ConfigError, ModelError, SkillOptError, told
from skillopt_kernel.interfaces import Finding
from skillopt_kernel.store.redaction import Redactor

Result = Literal["ok", "warning", "error"]
Made = TypeVar("Made")


@frozen
class Checked:
    """One line of the table. `text` says what was found and, where it is not well, what to do."""

    check: str
    result: Result
    text: str


@define
class Report:
    """What was found so far. No credential that a configuration holds, and nothing that looks like one, is told."""

    found: list[Checked] = field(factory=list)
    credentials: Iterable[str] = ()

    def add(self, check: str, result: Result, text: str) -> None:
        one = Checked(check, result, Redactor(self.credentials).diagnostics(text))
        if one not in self.found:
            self.found.append(one)

    def findings(self, check: str, findings: Iterable[Finding]) -> None:
        for result, sentence in findings:
            self.add(check, result, sentence)

    def attempt(self, check: str, make: Callable[[], Made], ok: Callable[[Made], str] | None = None) -> Made | None:
        """What `make` gives, `ok` of it as a finding; `None` and an error's sentence where it cannot be made."""
        try:
            made = make()
        except ConfigError as error:
            for problem in error.problems:
                self.add(check, "error", problem)
        except (SkillOptError, ModelError) as error:
            self.add(check, "error", told(error))
        except Exception as error:  # a driver's defect, which would end a run as well
            self.add(
                check, "error", f"{type(error).__name__}: {error}. That is a defect of the plugin; report it there."
            )
        else:
            if ok is not None:
                self.add(check, "ok", ok(made))
            return made
        return None

    def own(self, check: str, driver: object) -> None:
        """The findings of the driver's own method `check`, if it has one."""
        look = getattr(driver, "check", None)
        if callable(look):
            self.findings(check, self.attempt(check, look) or ())

    @property
    def well(self) -> bool:
        """Whether nothing was found that would stop a run."""
        return all(one.result != "error" for one in self.found)
