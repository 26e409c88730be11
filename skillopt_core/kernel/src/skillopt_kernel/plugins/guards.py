"""Each hook implementation inside a guard, so that what goes wrong in it is reported under its plugin's name.

A guard calls the implementation, checks what it returns, and turns an exception into a `HookError`. Errors
that already are sentences (`SkillOptError`), a backend's (`ModelError`) and the run's own stop pass unchanged.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

from skillopt_kernel.errors import Cancelled, HookError, ModelError, SkillOptError

Check = Callable[[Any], str | None]
"""What is wrong with a result, as "a list where an Update is expected", or `None`."""

PASSED_ON = (SkillOptError, ModelError, Cancelled)


class Trace:
    """Writes a line for each call of an implementation to standard error; off, it writes nothing."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, hook: str, plugin: str, began: float, ending: str) -> None:
        if self.on:
            sys.stderr.write(f"{hook}  {plugin}  {ending}  {1000 * (time.perf_counter() - began):.1f} ms\n")


class ObserverErrors:
    """Counts what observers raised, and reports each plugin once."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.count = 0
        self._first: HookError | None = None
        self._report = report
        self._reported: set[str] = set()

    def add(self, hook: str, plugin: str, error: Exception) -> None:
        self.count += 1
        if self._first is None:
            self._first = HookError(hook, plugin, error)
            self._first.__cause__ = error
        if plugin not in self._reported:
            self._reported.add(plugin)
            self._report(
                f"the observer {plugin!r} failed in {hook}: {type(error).__name__}: {error}. The run goes on; "
                f"further failures of {plugin!r} are counted and not shown."
            )

    def take_first(self) -> HookError | None:
        """The first failure since the last time asked, for `hooks.strict`."""
        first, self._first = self._first, None
        return first


def _summary(value: Any) -> str:
    return "none" if value is None else type(value).__name__


def guard_stage(
    function: Callable[..., Any], hook: str, plugin: str, check: Check, trace: Trace, *, ours: bool
) -> Callable[..., Any]:
    """A guarded implementation. With `ours`, a default of the kernel: what it raises is a defect and passes."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            result = function(*args, **kwargs)
            _require(check, result)
        except PASSED_ON:
            raise
        except Exception as error:
            trace(hook, plugin, began, f"raised {type(error).__name__}")
            if ours:
                raise
            raise HookError(hook, plugin, error) from error
        trace(hook, plugin, began, f"-> {_summary(result)}")
        return result

    return guarded


def _require(check: Check, result: Any) -> None:
    wrong = None if result is None else check(result)
    if wrong is not None:
        raise TypeError(f"it returned {wrong}")


def guard_wrapper(
    function: Callable[..., Any], hook: str, plugin: str, check: Check, trace: Trace
) -> Callable[..., Generator[None, Any, Any]]:
    """A guarded wrapper: a generator function with one `yield`, which gives the result and must return one."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Generator[None, Any, Any]:
        began = time.perf_counter()
        wrapper = function(*args, **kwargs)
        _step(lambda: next(wrapper), hook, plugin, "it ended without a yield; a wrapper yields once")
        try:
            inner = yield
        except Exception as error:
            failure = error
            result = _finish(lambda: wrapper.throw(failure), hook, plugin, passing=failure)
        else:
            result = _finish(lambda: wrapper.send(inner), hook, plugin)
            if result is None and inner is not None:
                cause = TypeError("it returned nothing; a wrapper returns the result that its yield gave, or another")
                raise HookError(hook, plugin, cause)
        try:
            _require(check, result)
        except TypeError as error:
            raise HookError(hook, plugin, error) from error
        trace(hook, plugin, began, f"wrapped -> {_summary(result)}")
        return result

    return guarded


def _step(advance: Callable[[], Any], hook: str, plugin: str, ended: str) -> None:
    try:
        advance()
    except StopIteration:
        raise HookError(hook, plugin, TypeError(ended)) from None
    except PASSED_ON:
        raise
    except Exception as error:
        raise HookError(hook, plugin, error) from error


def _finish(advance: Callable[[], Any], hook: str, plugin: str, passing: Exception | None = None) -> Any:
    """Run a wrapper from its yield to its end. The error that came through its yield is not its own."""
    try:
        advance()
    except StopIteration as stop:
        return stop.value
    except PASSED_ON:
        raise
    except Exception as error:
        if error is passing:
            raise
        raise HookError(hook, plugin, error) from error
    raise HookError(hook, plugin, TypeError("it yields more than once; a wrapper yields once"))


def guard_observer(
    function: Callable[..., Any], hook: str, plugin: str, errors: ObserverErrors, trace: Trace
) -> Callable[..., None]:
    """A guarded observer: what it raises is counted and reported, and stops nothing."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        began = time.perf_counter()
        try:
            function(*args, **kwargs)
        except Exception as error:
            errors.add(hook, plugin, error)
            trace(hook, plugin, began, f"raised {type(error).__name__}")
        else:
            trace(hook, plugin, began, "done")

    return guarded


def tagged(function: Callable[..., Any], plugin: str) -> Callable[..., Any]:
    """An implementation that returns (plugin, result), where a hook asks all and must tell who said what."""

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return None if result is None else (plugin, result)

    return named


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names under which a hook implementation asks for its arguments, `*args` and `**kwargs` left out."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
