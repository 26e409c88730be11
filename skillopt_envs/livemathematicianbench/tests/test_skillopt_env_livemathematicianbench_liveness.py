"""Each key of `env` that this environment owns changes what the target is asked."""

import attrs
import pytest
from skillopt_env_livemathematicianbench.settings import LiveMathematicianBenchSettings
from skillopt_testkit.scripted import ScriptedTarget

LIVE = {
    "shuffle_choices": False, "use_theorem": True, "use_sketch": True, "clean_items": True, "max_turns": 2,
    "max_completion_tokens": 99,
}  # fmt: skip
"""Each key of the environment with another value than its default."""


def test_every_key_has_a_change():
    assert set(LIVE) == {field.name for field in attrs.fields(LiveMathematicianBenchSettings)}


@pytest.mark.parametrize("key", LIVE)
def test_each_key_changes_what_the_target_is_asked(environment, key):
    def asked(**settings):
        calls = []

        class Target(ScriptedTarget):
            def chat(self, messages, **more):
                calls.append((tuple(messages), more["max_tokens"]))
                return super().chat(messages, **more)

        made = environment(**settings)
        splits = made.splits()
        for task in splits.train + splits.selection + splits.test:
            made.attempt(task.hidden(), "", Target("<answer>A</answer>"))
        return calls

    assert asked(**{key: LIVE[key]}) != asked()
