"""One test a hook, `test_hook_<name>`: a plugin implements it, and the facade hands its answer on.

The last tests hold that none is missing here or in the documentation.
"""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import pytest
from attrs import evolve
from skillopt_kernel import hookspecs
from skillopt_kernel.config.schema import HooksSettings
from skillopt_kernel.errors import ConfigError, HookError, RefuseRun
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.plugins.assembly import assemble
from skillopt_kernel.plugins.registry import HOOKS
from skillopt_kernel.records import (
    Applied,
    Edit,
    EditBudget,
    GateDecision,
    Outcome,
    Proposal,
    Score,
    Scored,
    SlowUpdate,
    Task,
    Update,
)
from skillopt_kernel.store.events import Event

RUN = SimpleNamespace(settings=SimpleNamespace(train=SimpleNamespace(batch_size=400)))
STEP = SimpleNamespace(number=3, epoch=2)
EPOCH = SimpleNamespace(number=2)
TASK = Task("t1")
OUTCOME = Outcome("t1", "", "0123", 0, score=Score(1, 1))
SCORED = Scored("# Skill", "initial")


def calls_of(**implementations):
    """The facade over one plugin with these hook implementations."""
    plugin = SimpleNamespace(**{name: hookimpl(function) for name, function in implementations.items()})
    return assemble([("default", plugin)], HooksSettings()).calls


def test_hook_configure():
    calls = calls_of(skillopt_configure=lambda run: {"train.batch_size": run.settings.train.batch_size // 4})
    assert calls.configure(RUN) == (("default", {"train.batch_size": 100}),)

    def refuse(run):
        raise RefuseRun("this machine serves at most 100 tasks a step")

    with pytest.raises(RefuseRun, match=r"^this machine"):
        calls_of(skillopt_configure=refuse).configure(RUN)


def test_overrides_of_the_hooks_come_too_late_and_are_refused():
    with pytest.raises(
        ConfigError, match=r"the plugin 'default' sets hooks\.strict in skillopt_configure, .* too late"
    ):
        calls_of(skillopt_configure=lambda: {"train.batch_size": 4, "hooks.strict": True}).configure(RUN)


def test_hook_rollout():
    calls = calls_of(skillopt_rollout=lambda tasks: [evolve(OUTCOME, task_id=task.id) for task in tasks])
    assert [outcome.task_id for outcome in calls.rollout(RUN, STEP, (TASK, Task("t2")), "# Skill")] == ["t1", "t2"]


def test_hook_reflect():
    def reflect(outcomes, skill):
        return tuple(Proposal(outcome.task_id, "failure", (Edit("append", skill),)) for outcome in outcomes)

    (proposal,) = calls_of(skillopt_reflect=reflect).reflect(RUN, STEP, (OUTCOME,), "# Skill")
    assert (proposal.group, proposal.items[0].content) == ("t1", "# Skill")


def test_hook_aggregate():
    proposals = (Proposal("a", "failure", ("x",)), Proposal("b", "success", ("y",)))
    calls = calls_of(
        skillopt_aggregate=lambda proposals: Update(tuple(item for proposal in proposals for item in proposal.items))
    )
    assert calls.aggregate(RUN, STEP, proposals, "").items == ("x", "y")


def test_hook_edit_budget():
    calls = calls_of(skillopt_edit_budget=lambda step, update: EditBudget(0 if update else step.epoch))
    assert calls.edit_budget(RUN, STEP, None).limit == 2
    assert calls.edit_budget(RUN, STEP, Update(("x",))).limit == 0


def test_hook_select():
    calls = calls_of(skillopt_select=lambda update, budget: Update(update.items[: budget.limit]))
    assert calls.select(RUN, STEP, Update(("x", "y")), EditBudget(1), "").items == ("x",)


def test_hook_update():
    calls = calls_of(skillopt_update=lambda update, skill: Applied(skill + update.items[0]))
    assert calls.update(RUN, STEP, Update(("!",)), "# Skill").candidate == "# Skill!"


def test_hook_score_bonus():
    first = SimpleNamespace(skillopt_score_bonus=hookimpl(lambda skill: -0.001 * len(skill)))
    second = SimpleNamespace(skillopt_score_bonus=hookimpl(lambda run, skill: None))
    third = SimpleNamespace(skillopt_score_bonus=hookimpl(lambda: 0.5))
    calls = assemble([("a", first), ("b", second), ("c", third)], HooksSettings()).calls
    assert calls.score_bonus(RUN, "12345") == pytest.approx(0.495)
    assert assemble([], HooksSettings()).calls.score_bonus(RUN, "12345") == 0
    for wrong in (float("nan"), True, "0.1"):
        calls = calls_of(skillopt_score_bonus=lambda wrong=wrong: wrong)
        with pytest.raises(TypeError, match="it returned"):
            calls.score_bonus(RUN, "")


def test_hook_gate():
    calls = calls_of(
        skillopt_gate=lambda applied, current, best: GateDecision("reject", current.skill, reason=applied.candidate)
    )
    decision = calls.gate(RUN, STEP, Applied("longer"), SCORED, SCORED)
    assert (decision.action, decision.skill, decision.reason) == ("reject", "# Skill", "longer")


def test_hook_slow_update():
    calls = calls_of(
        skillopt_slow_update=lambda epoch, skill: SlowUpdate(f"{skill} {epoch.number}") if epoch.number == 2 else None
    )
    assert calls.slow_update(RUN, EPOCH, "s").content == "s 2"
    assert calls.slow_update(RUN, SimpleNamespace(number=1), "s") is None


def test_hook_meta_skill():
    calls = calls_of(skillopt_meta_skill=lambda epoch: "Add rules." if epoch.number == 2 else None)
    assert calls.meta_skill(RUN, EPOCH) == "Add rules."
    assert calls.meta_skill(RUN, SimpleNamespace(number=1)) is None


def only_its_observer_gets(name):
    """Whether the event `name` reaches the observer of its name, and no other one."""
    seen, others = [], []
    implementations = {
        f"skillopt_{other}": (lambda event, into=(seen if other == name else others): into.append(event))
        for other in hookspecs.OBSERVERS
    }
    event = Event(name, 1, "2026-01-01T00:00:00.000Z", "run", step=3, data={"score": 0.5})
    calls_of(**implementations).observe(event)
    return (seen, others) == ([event], [])


def test_hook_run_started():
    assert only_its_observer_gets("run_started")


def test_hook_run_finished():
    assert only_its_observer_gets("run_finished")


def test_hook_run_failed():
    assert only_its_observer_gets("run_failed")


def test_hook_epoch_started():
    assert only_its_observer_gets("epoch_started")


def test_hook_epoch_finished():
    assert only_its_observer_gets("epoch_finished")


def test_hook_step_started():
    assert only_its_observer_gets("step_started")


def test_hook_step_finished():
    assert only_its_observer_gets("step_finished")


def test_hook_stage_started():
    assert only_its_observer_gets("stage_started")


def test_hook_stage_finished():
    assert only_its_observer_gets("stage_finished")


def test_hook_attempt_started():
    assert only_its_observer_gets("attempt_started")


def test_hook_attempt_finished():
    assert only_its_observer_gets("attempt_finished")


def test_hook_model_called():
    assert only_its_observer_gets("model_called")


def test_hook_checkpoint_saved():
    assert only_its_observer_gets("checkpoint_saved")


def test_every_hook_is_tested():
    assert HOOKS
    missing = [hook for hook in HOOKS if f"test_hook_{hook.removeprefix('skillopt_')}" not in globals()]
    assert missing == []


def test_every_hook_is_a_stage_an_observer_or_asks_all():
    rest = {hook.removeprefix("skillopt_") for hook in HOOKS} - set(hookspecs.STAGES) - set(hookspecs.OBSERVERS)
    assert rest == {"configure", "score_bonus"}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook):
    """A summary sentence, every argument explained here or in the module, and an example of at most eight lines."""
    text = inspect.getdoc(getattr(hookspecs, hook))
    summary = text.partition("\n")[0]
    assert re.fullmatch(r"[A-Z].*\.", summary), f"{hook}: the first line is not a sentence"
    before, _, example = text.partition("Example::\n\n")
    assert example, f"{hook}: no example"
    lines = example.strip("\n").splitlines()
    assert len(lines) <= 8
    code = inspect.cleandoc(example)
    compile(code, hook, "exec")
    assert f"def {hook}(" in code
    assert "@hookimpl" in code
    if hook.removeprefix("skillopt_") in hookspecs.OBSERVERS:
        assert "data:" in before
    else:
        assert re.search(r"None|Returns|default", before), f"{hook}: what does None mean?"


def test_a_wrong_result_names_the_plugin_and_what_was_expected():
    wrong = {
        "skillopt_aggregate": ([], "list where a Update is expected"),
        "skillopt_rollout": (OUTCOME, "Outcome where a Sequence is expected"),
        "skillopt_reflect": ([None], "NoneType where a Proposal is expected"),
        "skillopt_meta_skill": (3, "int where a str is expected"),
        "skillopt_edit_budget": (False, "bool where a EditBudget is expected"),
    }
    for hook, (result, message) in wrong.items():
        plugin = SimpleNamespace(**{hook: hookimpl(lambda result=result: result)})
        assembled = assemble([], HooksSettings(), drivers=[("gate:acme", plugin)])
        arguments = [RUN, STEP, (), ""][: len(HOOKS[hook])]
        with pytest.raises(HookError, match=message) as caught:
            getattr(assembled.calls, hook.removeprefix("skillopt_"))(*arguments)
        assert caught.value.plugin == "gate:acme"
