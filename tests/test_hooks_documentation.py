"""`docs/hooks.md` holds every hook under its own heading, with its true signature and the text of its specification."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from skillopt_commands.hooks import kind_of
from skillopt_kernel import hookspecs
from skillopt_kernel.plugins.registry import HOOKS

PAGE = (Path(__file__).parents[1] / "docs" / "hooks.md").read_text(encoding="utf-8")


def part(hook: str) -> str:
    """What the page says under the hook's heading."""
    found = re.search(rf"^### {hook}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/hooks.md has no heading ### {hook}"
    return found.group(1)


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_heading_its_signature_its_text_and_its_example(hook: str) -> None:
    documented = part(hook)
    assert f"`{hook}({', '.join(HOOKS[hook])})` ({kind_of(hook)})" in documented
    text, _, example = (inspect.getdoc(getattr(hookspecs, hook)) or "").partition("Example::\n\n")
    assert text.strip() in documented
    assert f"```python\n{inspect.cleandoc(example)}\n```" in documented


def test_the_page_documents_no_hook_that_is_not_there_and_keeps_the_order() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == list(HOOKS)


def test_the_python_of_the_page_compiles() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) > len(HOOKS)
    for block in blocks:
        compile(block, "docs/hooks.md", "exec")
