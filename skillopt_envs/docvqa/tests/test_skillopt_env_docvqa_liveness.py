"""Each key of `env` that this environment owns changes what the target receives, or whether a run begins."""

import attrs
import pytest
from skillopt_env_docvqa.settings import DocVQASettings
from skillopt_env_docvqa_letters import draw, noise, over, write_split
from skillopt_kernel.errors import DataError
from skillopt_testkit.scripted import ScriptedTarget

CHANGES = {
    "max_turns": {"max_turns": 2},
    "max_completion_tokens": {"max_completion_tokens": 9},
    "image_detail": {"image_detail": "high"},
    "image_max_side": {"image_max_side": 500},
    "image_max_bytes": {"image_max_bytes": 10_000},
    "image_too_large": {"image_too_large": "refuse", "image_max_side": 500},
    "image_root": {"image_root": "elsewhere"},
}


class Watched(ScriptedTarget):
    """A target that keeps the token limits, too."""

    def chat(self, messages, *, max_tokens=None, **more):
        self.limits = [*getattr(self, "limits", []), max_tokens]
        return super().chat(messages, max_tokens=max_tokens, **more)


def received(folder, changes):
    """What the target gets with these settings, or why a run does not begin."""
    root = {"image_root": folder / changes["image_root"]} if "image_root" in changes else {}
    made = over(folder, **changes | root)
    try:
        task = made.splits().train[0]
    except DataError as error:
        return str(error)
    target = Watched("<answer>12th May 1971</answer>")
    made.attempt(task.hidden(), "# Skill", target)
    return target.messages, target.limits


def test_every_key_has_a_change():
    assert set(CHANGES) == {field.name for field in attrs.fields(DocVQASettings)}


@pytest.mark.parametrize("key", CHANGES)
def test_a_key_changes_something(tmp_path, key):
    folder = write_split(tmp_path / "split", train=1, selection=1, test=0)
    draw(folder / "elsewhere/images/q0_d0.png", ["Another page"])
    draw(folder / "elsewhere/images/q1_d1.png", ["Another page"])
    noise(folder / "images/q0_d0.png", size=(600, 400))
    others = {name: value for name, value in CHANGES[key].items() if name != key}
    before, after = received(folder, others), received(folder, CHANGES[key])
    assert before != after
    assert isinstance(before, tuple)
    assert isinstance(after, str) == (key == "image_too_large")
