"""A process that calls a function of the user's: a line in and a line out, each a pickled mapping in base64.

The first line says which function; then each is one answer. A question to the judge goes out as a line of its own, and
what the judge says comes in. Nothing that the function prints can stand between.
"""

from __future__ import annotations

import base64
import inspect
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.plugins.discovery import load_object
from skillopt_kernel.plugins.errors import ObjectNotFound
from skillopt_kernel.plugins.hook_loading import importable_from

from skillopt_scorers.given import score_of

OFFERED = ("answer", "reference", "task", "judge")
"""What a function may name as parameters, beside those of `arguments`."""


class UnusableFunction(Exception):
    """The function is not there, or cannot be called with what there is."""


class JudgeFailed(Exception):
    """The judge gave no reply. Why, the run's process knows."""


def main() -> None:
    """Answer the lines of standard input until it ends."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what the function prints is no result
    lines: SimpleQueue[bytes] = SimpleQueue()
    source = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_read, args=(source, lines), daemon=True).start()
    judge = _Judge(lines, out)
    first = unpacked(lines.get())
    sys.path[:] = first["search"]
    try:
        call = Function(first["function"], first["path"], first["arguments"])
    except UnusableFunction as error:
        out.write(packed({"unusable": str(error)}))
        return
    out.write(packed({}))
    while True:
        out.write(packed(_scored(call, unpacked(lines.get()), judge)))


class Function:
    """One function, found and looked at. Raises `UnusableFunction`."""

    def __init__(self, name: str, path: tuple[Any, ...], arguments: Mapping[str, Any]) -> None:
        self.name, self._arguments = name, dict(arguments)
        self._call = _imported(name, path)
        self._offered = _parameters(self._call, name, arguments)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return self._call(**{name: values[name] for name in self._offered}, **self._arguments)


def packed(value: Mapping[str, Any]) -> bytes:
    """A line. Raises what `pickle` raises for a value that cannot be sent."""
    return base64.b64encode(pickle.dumps(value)) + b"\n"


def unpacked(line: bytes) -> dict[str, Any]:
    """What a line holds."""
    return pickle.loads(base64.b64decode(line))  # type: ignore[no-any-return]


def _read(source: Any, lines: SimpleQueue[bytes]) -> None:
    for line in source:
        lines.put(line)
    os._exit(0)  # nobody waits for a result any more, whatever the function is at


def _scored(call: Function, job: Mapping[str, Any], judge: _Judge) -> Mapping[str, Any]:
    who = f"the function {call.name}"
    try:
        made = score_of(call({**job, "judge": judge if job["judge"] else None}), who)
    except JudgeFailed:
        return {"judge_failed": True}
    except EnvironmentFailure as error:
        return {"failed": str(error)}
    except (Exception, SystemExit) as error:
        return {"failed": f"{who} raised {type(error).__name__}: {error} ({_place(error)})"}
    return {"score": (made.hard, made.soft, made.feedback, dict(made.named))}


class _Judge:
    """The judge as the function may use it: what it asks, the run's process asks."""

    def __init__(self, lines: SimpleQueue[bytes], out: Any) -> None:
        self._lines, self._out, self._lock = lines, out, threading.Lock()

    def chat(self, messages: Any, *, schema: Mapping[str, Any] | None = None) -> Any:
        with self._lock:
            self._out.write(packed({"messages": messages, "schema": schema}))
            reply = unpacked(self._lines.get())
        if "reply" not in reply:
            raise JudgeFailed("the judge gave no reply")
        return reply["reply"]


def _imported(name: str, path: tuple[Any, ...]) -> Callable[..., Any]:
    with importable_from(path):
        try:
            found = load_object(name)
        except ObjectNotFound as error:
            looked = ", ".join(map(str, path))
            where = f"Looked in {looked} (path) and in what is installed." if looked else (
                "If its module lies beside the configuration file, add `path: [.]` to the scorer's settings."
            )  # fmt: skip
            raise UnusableFunction(f"{error} {where}") from error
    if not callable(found):
        raise UnusableFunction(f"{name} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of `OFFERED` that the function takes. Raises when it cannot be called with what there is."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise UnusableFunction(f"nobody can tell what parameters {name} takes: {error}") from error
    kinds = [parameter.kind for parameter in parameters.values()]
    taken = {one for one, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        taken |= {*OFFERED, *arguments}
    clash, extra = sorted(set(arguments) & set(OFFERED)), sorted(set(arguments) - taken)
    if clash or extra:
        why = f"{clash[0]} is given by the scorer" if clash else f"{name} has no parameter {extra[0]!r}"
        raise UnusableFunction(f"remove {(clash or extra)[0]} from `arguments`: {why}")
    offered = tuple(one for one in OFFERED if one in taken)
    lacking = [
        one for one, each in parameters.items()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and (one not in (*offered, *arguments) or each.kind is each.POSITIONAL_ONLY)
    ]  # fmt: skip
    if lacking:
        raise UnusableFunction(
            f"{name} asks for {lacking[0]!r}, which nobody gives; by name it can have {', '.join(OFFERED)} and what "
            f"stands under `arguments`"
        )
    return offered


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "at an unknown place"


if __name__ == "__main__":
    main()
