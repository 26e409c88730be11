"""The keys of `optimizer` as configurations have them: their forms, and mistakes with their place."""

import pytest
from skillopt_hook_skill_aware import plugin
from skillopt_hook_skill_aware.reflection import SkillAware
from skillopt_hook_skill_aware.settings import SkillAwareSettings
from skillopt_testkit.configuration import problems

FIRST = "optimizer:\n  use_skill_aware_reflection: true\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("skill_aware_appendix_source: success", "expected one of both, failure_only, got the text 'success'"),
        ("skill_aware_appendix_source: 1", "expected one of both, failure_only, got the number 1"),
        ("skill_aware_consolidate_threshold: -1", "must be at least 0, not -1"),
        ("skill_aware_consolidate_threshold: '5'", "expected a whole number, got the text '5'"),
        ("skill_aware_consolidate_threshold: 5.5", "expected a whole number, got the number 5.5"),
        ("skill_aware_consolidate_threshold: true", "expected a whole number, got true"),
    ],
)
@pytest.mark.parametrize("used", ["true", "false"])
def test_a_value_that_cannot_be_used_is_told_with_its_place(tmp_path, line, message, used):
    key = line.partition(":")[0]
    (problem,) = problems(tmp_path, FIRST.replace("true", used) + f"  {line}\n")
    assert problem.startswith(f"mine.yaml:3:3: optimizer.{key}: ")
    assert message in problem


def test_the_switch_is_true_or_false(tmp_path):
    (problem,) = problems(tmp_path, "optimizer:\n  use_skill_aware_reflection: 1\n")
    assert problem == "mine.yaml:2:3: optimizer.use_skill_aware_reflection: expected true or false, got the number 1"
    (problem,) = problems(tmp_path, FIRST.replace("true", "false") + "hooks: {plugins: [skill_aware]}\n")
    assert problem.startswith("mine.yaml:2:3: optimizer.use_skill_aware_reflection: is false, but hooks.plugins names")
    given = ("skill_aware_consolidate_threshold=5", "optimizer.skill_aware_appendix_source=failure_only")
    assert problems(tmp_path, FIRST, *given) == []


def test_null_and_nothing_are_the_defaults():
    made = SkillAwareSettings()
    assert (made.skill_aware_appendix_source, made.skill_aware_consolidate_threshold) == ("both", 0)


def test_the_manifest_names_what_there_is():
    assert (plugin.kind, plugin.name) == ("hook", "skill_aware")
    assert plugin.keys == ("optimizer.use_skill_aware_reflection",)
    for path, named in ((plugin.factory, SkillAware), (plugin.settings, SkillAwareSettings)):
        assert path == f"{named.__module__}:{named.__name__}"
