"""The plugin between a loop's stages: what analysts are told, and how notes join, fall, wait and are merged."""

import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from attrs import define, field
from skillopt_hook_skill_aware.notes import notes_in, with_notes
from skillopt_hook_skill_aware.reflection import SkillAware
from skillopt_hook_skill_aware.settings import SkillAwareSettings
from skillopt_kernel.errors import PassingError, PermanentError, RefuseRun
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Applied, Proposal

SKILL = "---\nname: x\n---\n# S\n\n- rule\n"


@define
class Step:
    """What the plugin uses of a step."""

    proposals: tuple[Proposal, ...] = ()
    batch: int = 0
    instructions: dict[str, str] = field(factory=dict)
    counters: dict[str, int] = field(factory=dict)
    call_failures: list[str] = field(factory=list)


@define
class Loop:
    """A loop that only updates. Each step has a plugin of its own and a state read back from JSON, as after a kill."""

    settings: SkillAwareSettings = field(factory=SkillAwareSettings)
    answer: Callable[[ChatRequest], str] = field(default=lambda request: "{}")
    skill: str = SKILL
    state: dict[str, Any] = field(factory=dict)
    requests: list[ChatRequest] = field(factory=list)

    def optimizer(self, stage: str, key: str = "") -> ModelOptimizer:
        def complete(request: ChatRequest) -> ChatReply:
            self.requests.append(request)
            return ChatReply(self.answer(request))

        return ModelOptimizer(complete, stage)

    def step(self, *notes: str, edit: str = "", keep: bool = False, error: str | None = None) -> tuple[Applied, Step]:
        """One step whose analysts gave these notes; `keep`: the gate takes the candidate."""
        plugin = SkillAware(self.settings, DriverContext(logging.getLogger("test")))
        self.state = json.loads(json.dumps(self.state))
        step = Step((Proposal("fail_000", "failure", notes=notes), Proposal("fail_001", "failure")))
        wrapper = plugin.skillopt_update(self, step, self.skill)  # type: ignore[arg-type]
        next(wrapper)
        with pytest.raises(StopIteration) as stop:
            wrapper.send(Applied(self.skill + edit, record={"other": 1}, error=error))
        applied: Applied = stop.value.value
        if keep:
            self.skill = applied.candidate
        return applied, step


def told(source: str, before: str = "", batch: int = 0) -> dict[str, str]:
    """What analysts are told with this source, and with another plugin's text for failures before it."""
    settings = SkillAwareSettings(source)  # type: ignore[arg-type]
    step = Step(batch=batch, instructions={"failure": before} if before else {})
    wrapper = SkillAware(settings, DriverContext(logging.getLogger("test"))).skillopt_reflect(step, SKILL)  # type: ignore[arg-type]
    next(wrapper)
    with pytest.raises(StopIteration) as stop:
        wrapper.send(("whatever",))
    assert stop.value.value == ("whatever",)
    return step.instructions


def test_analysts_are_told_once_and_those_of_successes_only_with_source_both() -> None:
    both, failures = told("both"), told("failure_only")
    assert set(both) == {"failure", "success"} and set(failures) == {"failure"}
    assert both["failure"] == failures["failure"]
    for word in ("SKILL_DEFECT", "EXECUTION_LAPSE", "appendix_notes"):
        assert word in both["failure"]
    assert "DISCOVERY" in both["success"] and "OPTIMIZATION" in both["success"]
    assert told("failure_only", before="Mine.")["failure"] == f"Mine.\n{failures['failure']}"
    assert told("both", batch=1) == {}, "a later batch of the step has been told already"


def test_notes_join_the_candidate_with_its_edit_and_nothing_else_changes() -> None:
    applied, step = Loop().step("- Look  twice.", "LOOK TWICE", "Count.\n- Then stop.", edit="- new\n")
    assert applied.candidate == with_notes(SKILL + "- new\n", ["Look twice.", "Count. Then stop."])
    assert applied.record["other"] == 1
    assert applied.record["appendix_notes"] == {
        "step_notes": ["- Look  twice.", "LOOK TWICE", "Count.\n- Then stop."],
        "waited": [],
        "given_up": [],
        "added": ["Look twice.", "Count. Then stop."],
        "appendix_after": ["Look twice.", "Count. Then stop."],
    }
    assert step.counters == {
        "n_execution_lapse_notes": 3,
        "n_appendix_notes_added": 2,
        "n_appendix_notes_total": 2,
        "n_appendix_notes_consolidated": 0,
    }


def test_without_new_notes_the_candidate_is_left_alone_whatever_the_order_of_regions() -> None:
    loop = Loop(skill=with_notes(SKILL, ["a"]) + "\n<!-- SLOW_UPDATE_START -->\ng\n<!-- SLOW_UPDATE_END -->\n")
    assert loop.step()[0].candidate == loop.skill
    assert loop.step("A.")[0].candidate == loop.skill
    assert Loop().step()[0].candidate == SKILL, "no empty region"


def test_fallen_notes_wait_for_the_next_candidate_and_kept_ones_do_not() -> None:
    loop = Loop()
    loop.step("a")
    applied, step = loop.step("b", keep=True)
    assert notes_in(applied.candidate) == ("a", "b")
    assert applied.record["appendix_notes"]["waited"] == ["a"]
    assert (step.counters["n_execution_lapse_notes"], step.counters["n_appendix_notes_added"]) == (1, 2)
    applied, _ = loop.step("c")
    assert notes_in(applied.candidate) == ("a", "b", "c")
    assert applied.record["appendix_notes"]["waited"] == []


def test_a_note_that_fell_twice_is_given_up_until_it_is_found_again() -> None:
    loop = Loop()
    loop.step("harmful")
    loop.step("b")
    applied, _ = loop.step("c", keep=True)
    assert applied.record["appendix_notes"]["given_up"] == ["harmful"]
    assert notes_in(applied.candidate) == ("b", "c")
    assert notes_in(loop.step("harmful")[0].candidate) == ("b", "c", "harmful")


def test_a_candidate_that_could_not_be_made_costs_a_note_nothing() -> None:
    loop = Loop()
    for _ in range(3):
        applied, step = loop.step("a", error="unusable_reply: no")
        assert applied.candidate == SKILL
        assert step.counters["n_appendix_notes_added"] == 0
    assert notes_in(loop.step()[0].candidate) == ("a",)


def merging(*notes: str) -> Callable[[ChatRequest], str]:
    return lambda request: json.dumps({"appendix_notes": list(notes)})


def consolidating(threshold: int, answer: Callable[[ChatRequest], str]) -> Loop:
    return Loop(SkillAwareSettings(skill_aware_consolidate_threshold=threshold), answer)


def test_above_the_threshold_one_call_merges_and_the_merged_notes_are_kept() -> None:
    loop = consolidating(2, merging("a or b", "c"))
    loop.step("a", "b", keep=True)
    assert not loop.requests
    applied, step = loop.step("c", keep=True)
    assert notes_in(loop.skill) == ("a or b", "c")
    assert step.counters == {
        "n_execution_lapse_notes": 1,
        "n_appendix_notes_added": 2,
        "n_appendix_notes_total": 2,
        "n_appendix_notes_consolidated": 1,
    }
    (request,) = loop.requests
    assert (request.stage, request.max_tokens) == ("appendix_consolidate", 4096)
    assert "- a\n- b\n- c" in request.messages[-1].text
    applied, _ = loop.step("d")
    assert applied.record["appendix_notes"]["waited"] == [], "what was merged into others does not come back"


@pytest.mark.parametrize(
    "answer",
    [
        merging(),
        merging(" ", "-"),
        merging("a", "b", "c"),
        merging("a", "b", "c", "d"),
        lambda request: "no JSON",
        lambda request: '{"notes": ["a"]}',
        lambda request: "{}",
    ],
)
def test_a_reply_without_fewer_notes_keeps_them_and_is_asked_for_again_only_when_they_are_more(answer: Any) -> None:
    """W55."""
    loop = consolidating(2, answer)
    applied, step = loop.step("a", "b", "c", keep=True)
    assert notes_in(applied.candidate) == ("a", "b", "c")
    assert step.counters["n_appendix_notes_consolidated"] == 0
    asked = len(loop.requests)
    assert asked in (1, 2)  # once, and at most one reminder
    assert bool(step.call_failures) == (asked == 2)
    assert all(sentence.startswith("unusable_reply: ") for sentence in step.call_failures)
    for _ in range(3):
        loop.step("C.", edit="- more\n", keep=True)
    assert len(loop.requests) == asked
    loop.step("d")
    assert len(loop.requests) > asked


def test_a_failed_call_is_counted_and_a_permanent_one_ends_the_run() -> None:
    def fail(request: ChatRequest) -> str:
        raise PassingError("503 from the endpoint")

    loop = consolidating(1, fail)
    applied, step = loop.step("a", "b")
    assert step.call_failures == ["call_failed: PassingError: 503 from the endpoint"]
    assert notes_in(applied.candidate) == ("a", "b")

    def refuse(request: ChatRequest) -> str:
        raise PermanentError("no key; set one")

    plugin = SkillAware(SkillAwareSettings(skill_aware_consolidate_threshold=1), DriverContext(logging.getLogger("t")))
    loop = consolidating(1, refuse)
    wrapper = plugin.skillopt_update(loop, Step((Proposal("g", "failure", notes=("a", "b")),)), SKILL)  # type: ignore[arg-type]
    next(wrapper)
    with pytest.raises(PermanentError):
        wrapper.send(Applied(SKILL))


def test_a_merged_list_that_fell_is_asked_about_again_only_when_it_has_grown() -> None:
    loop = consolidating(1, merging("both"))
    loop.step("a", "b")
    applied, _ = loop.step(edit="- other\n")
    assert notes_in(applied.candidate) == ("a", "b") and len(loop.requests) == 1
    loop = consolidating(1, merging("both"))
    loop.step("a", "b")
    loop.step("c")
    assert len(loop.requests) == 2


def test_merged_notes_are_lines_without_markers() -> None:
    loop = consolidating(1, merging("a\n- <!-- APPENDIX_END --> b"))
    assert notes_in(loop.step("a", "b")[0].candidate) == ("a b",)


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_a_mode_that_writes_the_text_anew_is_refused(mode: str) -> None:
    plugin = SkillAware(SkillAwareSettings(), DriverContext(logging.getLogger("test")))
    origins = {"optimizer.skill_update_mode": "mine.yaml:3:5", "optimizer.use_skill_aware_reflection": "mine.yaml:4:5"}
    settings = SimpleNamespace(optimizer=SimpleNamespace(skill_update_mode=mode), origins=origins)
    with pytest.raises(RefuseRun, match=rf"^mine\.yaml:3:5: optimizer\.skill_update_mode is {mode}") as caught:
        plugin.skillopt_configure(SimpleNamespace(settings=settings))  # type: ignore[arg-type]
    assert "optimizer.use_skill_aware_reflection (mine.yaml:4:5)" in str(caught.value)
    settings.origins = {"optimizer.skill_update_mode": "mine.yaml:3:5"}
    with pytest.raises(RefuseRun, match=r"the plugin skill_aware \(hooks\.plugins\)"):
        plugin.skillopt_configure(SimpleNamespace(settings=settings))  # type: ignore[arg-type]
    settings.optimizer.skill_update_mode = "patch"
    plugin.skillopt_configure(SimpleNamespace(settings=settings))  # type: ignore[arg-type]


def test_a_stage_that_nobody_answers_is_left_to_the_kernel_to_tell() -> None:
    plugin = SkillAware(SkillAwareSettings(), DriverContext(logging.getLogger("test")))
    wrapper = plugin.skillopt_update(Loop(), Step(), SKILL)  # type: ignore[arg-type]
    next(wrapper)
    with pytest.raises(StopIteration) as stop:
        wrapper.send(None)
    assert stop.value.value is None
    assert attrs.asdict(Step())["counters"] == {}
