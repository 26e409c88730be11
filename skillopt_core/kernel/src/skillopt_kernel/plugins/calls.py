"""The hooks as typed methods: what the loop calls, so that call sites are checked by the type checker.

What goes wrong in an implementation is reported under its plugin's name as a `HookError`. Errors that already are
sentences (`SkillOptError`), a backend's (`ModelError`) and the run's own stop pass unchanged, and so does what a
default of the kernel raises: that is a defect.
"""

from __future__ import annotations

import inspect
import math
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skillopt_kernel.errors import ConfigError, HookError, SkillOptError
from skillopt_kernel.plugins.errors import PASSED_ON
from skillopt_kernel.records import Applied, EditBudget, GateDecision, Outcome, Proposal, SlowUpdate, Update

if TYPE_CHECKING:
    import pluggy

    from skillopt_kernel.interfaces import Epoch, Run, Step
    from skillopt_kernel.records import Scored, Task
    from skillopt_kernel.store.events import Event

Answer = TypeVar("Answer")


class HookCalls:
    """One method a hook, each in the loop's thread but `observe`, which belongs to the observer thread.

    ours      the names of the kernel's own plugins
    report    gets a sentence when an observer fails for the first time; with `strict`, its failure is raised
    trace     whether each call writes a line to standard error
    """

    def __init__(
        self,
        manager: pluggy.PluginManager,
        ours: Collection[str] = (),
        *,
        report: Callable[[str], None],
        strict: bool = False,
        trace: bool = False,
    ) -> None:
        self._hook, self._ours = manager.hook, ours
        self._report, self._strict, self._trace = report, strict, trace
        self._reported: set[str] = set()
        self.observer_errors = 0
        """How often an observer has raised in this run."""

    def configure(self, run: Run) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """What each plugin wants changed, as (plugin, overrides) in the order asked; `RefuseRun` passes.

        Raises `ConfigError` for overrides of `hooks`: the hooks are assembled by then.
        """
        answers = tuple(self._each(Mapping, "skillopt_configure", run=run))  # type: ignore[type-abstract]
        for plugin, overrides in answers:
            late = [key for key in overrides if key.partition(".")[0] == "hooks"]
            if late:
                raise ConfigError(
                    f"the plugin {plugin!r} sets {', '.join(late)} in skillopt_configure, which is too late: the hooks "
                    f"of the run are assembled. Set it in the configuration, or with -o."
                )
        return answers

    def rollout(self, run: Run, step: Step, tasks: tuple[Task, ...], skill: str) -> tuple[Outcome, ...]:
        return self._several(Outcome, "skillopt_rollout", run=run, step=step, tasks=tasks, skill=skill)

    def reflect(self, run: Run, step: Step, outcomes: tuple[Outcome, ...], skill: str) -> tuple[Proposal, ...]:
        return self._several(Proposal, "skillopt_reflect", run=run, step=step, outcomes=outcomes, skill=skill)

    def aggregate(self, run: Run, step: Step, proposals: tuple[Proposal, ...], skill: str) -> Update:
        return self._one(Update, "skillopt_aggregate", run=run, step=step, proposals=proposals, skill=skill)

    def edit_budget(self, run: Run, step: Step, update: Update | None) -> EditBudget:
        return self._one(EditBudget, "skillopt_edit_budget", run=run, step=step, update=update)

    def select(self, run: Run, step: Step, update: Update, budget: EditBudget, skill: str) -> Update:
        return self._one(Update, "skillopt_select", run=run, step=step, update=update, budget=budget, skill=skill)

    def update(self, run: Run, step: Step, update: Update, skill: str) -> Applied:
        return self._one(Applied, "skillopt_update", run=run, step=step, update=update, skill=skill)

    def score_bonus(self, run: Run, skill: str) -> float:
        """The sum over all plugins, added exactly."""
        return math.fsum(number for _, number in self._each(float, "skillopt_score_bonus", run=run, skill=skill))

    def gate(self, run: Run, step: Step, applied: Applied, current: Scored, best: Scored) -> GateDecision:
        return self._one(GateDecision, "skillopt_gate", run=run, step=step, applied=applied, current=current, best=best)

    def slow_update(self, run: Run, epoch: Epoch, skill: str) -> SlowUpdate | None:
        return self._first(SlowUpdate, "skillopt_slow_update", run=run, epoch=epoch, skill=skill)

    def meta_skill(self, run: Run, epoch: Epoch) -> str | None:
        return self._first(str, "skillopt_meta_skill", run=run, epoch=epoch)

    def performs(self, stage: str) -> bool:
        """Whether any plugin implements the stage."""
        return bool(self._names(f"skillopt_{stage}"))

    def observe(self, event: Event) -> None:
        """Give the event to every observer of its name; what one raises is counted and stops nothing."""
        hook = f"skillopt_{event.name}"
        for name, call in self._calls(hook, event=event):
            try:
                call()
                self._write(hook, name, None)
            except Exception as error:
                self.observer_errors += 1
                if self._strict:
                    raise HookError(hook, name, error) from error
                if name not in self._reported:
                    self._reported.add(name)
                    self._report(
                        f"the observer {name!r} failed in {hook}: {type(error).__name__}: {error}. The run goes on; "
                        f"further failures of {name!r} are counted and not shown."
                    )

    # How implementations are asked ---------------------------------------------------------------------------

    def _first(self, kind: type[Answer], hook: str, **arguments: Any) -> Answer | None:
        """The first answer that is not `None`, with all wrappers around it."""
        asked = self._names(hook)
        with self._blamed(hook, asked):
            answer = getattr(self._hook, hook)(**arguments)
            self._write(hook, ", ".join(asked), answer)
            return None if answer is None else _checked(kind, answer)

    def _one(self, kind: type[Answer], hook: str, **arguments: Any) -> Answer:
        answer = self._first(kind, hook, **arguments)
        if answer is None:
            raise SkillOptError(
                f"no plugin answered the hook {hook}: each returned None. One of them must do the stage, and a wrapper "
                f"must return what its yield gave; `skillopt hooks explain CONFIG` lists who is asked."
            )
        return answer

    def _several(self, kind: type[Answer], hook: str, **arguments: Any) -> tuple[Answer, ...]:
        answers = self._one(Sequence, hook, **arguments)  # type: ignore[type-abstract]
        with self._blamed(hook, self._names(hook)):
            return tuple(_checked(kind, answer) for answer in answers)

    def _each(self, kind: type[Answer], hook: str, **arguments: Any) -> Iterator[tuple[str, Answer]]:
        """Every answer that is not `None`, with its plugin's name."""
        for name, call in self._calls(hook, **arguments):
            with self._blamed(hook, [name]):
                answer = call()
                self._write(hook, name, answer)
                checked = None if answer is None else _checked(kind, answer)
            if checked is not None:
                yield name, checked

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        return getattr(self._hook, hook).get_hookimpls()[::-1]  # type: ignore[no-any-return]

    def _names(self, hook: str) -> list[str]:
        return [each.plugin_name for each in self._implementations(hook)]

    def _calls(self, hook: str, **arguments: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        for each in self._implementations(hook):
            yield each.plugin_name, partial(each.function, *(arguments[name] for name in each.argnames))

    def _write(self, hook: str, asked: str, answer: Any) -> None:
        if self._trace:
            sys.stderr.write(f"{hook}  {asked}  -> {'none' if answer is None else type(answer).__name__}\n")

    @contextmanager
    def _blamed(self, hook: str, asked: Sequence[str]) -> Iterator[None]:
        """Raise what goes wrong inside as a `HookError` of the plugin whose fault it is."""
        try:
            yield
        except PASSED_ON:
            raise
        except Exception as error:
            plugin = self._culprit(hook, asked, error)
            if plugin in self._ours:
                raise
            raise HookError(hook, plugin, error) from error

    def _culprit(self, hook: str, asked: Sequence[str], error: Exception) -> str:
        """The plugin in whose implementation the error was raised, the innermost; else those it can have been."""
        codes = {
            getattr(inspect.unwrap(each.function), "__code__", None): each.plugin_name
            for each in self._implementations(hook)
            if each.plugin_name in asked
        }
        raised_in = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code in codes]
        if raised_in:
            return codes[raised_in[-1]]
        # An answer of another type, or a wrapper that does not yield once: no frame tells whose.
        return " or ".join(name for name in asked if name not in self._ours) or asked[-1]


def _checked(kind: type[Answer], answer: Any) -> Answer:
    """The answer, if it is of this kind. Raises `TypeError`."""
    if not isinstance(answer, kind) and not (kind is float and type(answer) is int):
        raise TypeError(f"it returned a {type(answer).__name__} where a {kind.__name__} is expected")
    if isinstance(answer, float) and not math.isfinite(answer):
        raise TypeError(f"it returned {answer}, which is not a finite number")
    return cast(Answer, answer)
