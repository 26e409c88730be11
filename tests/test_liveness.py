"""The liveness rule: switching an option changes a prompt, a decision, an artifact or an event of a run."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import probe_plugins
import pytest
from attrs import frozen
from skillopt_kernel import train
from skillopt_kernel.config.schema import SECTIONS
from skillopt_kernel.errors import CallTimeout, ConfigError, ModelError, SkillOptError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob, ChatRequest, Message
from skillopt_kernel.plugins.discovery import installed, load_manifest, make_driver, settings_class
from skillopt_kernel.skill import skill_hash
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

COSTS = ("timing", "tokens", "wall_time_s")


@frozen
class Ran:
    """A finished run, or why there is none."""

    folder: Path
    project: Project
    error: str = ""

    def text(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.project.lines(self.folder / "events.jsonl")

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps = json.loads(self.text("history.json"))
        return [{key: value for key, value in step.items() if key not in COSTS} for step in steps]

    def started(self, name: str) -> Any:
        return next(event for event in self.events if event["event"] == "run_started")[name]

    def asked(self, role: str, name: str) -> set[str]:
        """Each value of one field of the role's requests; the backend `recorded` keeps them."""
        lines = self.project.lines(self.folder.parent / "requests" / "requests.jsonl")
        return {json.dumps(line[name]) for line in lines if line["role"] == role}


Look = Callable[[Ran], Any]


def steps(*names: str) -> Look:
    """Fields of the steps' records: the decisions and what they rest on; without names, all of each."""
    return lambda run: [{name: step[name] for name in names or step} for step in run.steps]


def files(pattern: str) -> Look:
    """Which files there are."""
    return lambda run: sorted(path.relative_to(run.folder).as_posix() for path in run.folder.glob(pattern))


def content(name: str, key: str = "") -> Look:
    """What an artifact holds, or one key of it."""
    return lambda run: json.loads(run.text(name))[key] if key else run.text(name)


def rows(name: str, key: str) -> Look:
    """One key of each line of an artifact, in order."""
    return lambda run: [row[key] for row in run.project.lines(run.folder / name)]


def asked(role: str, name: str = "messages") -> Look:
    return lambda run: run.asked(role, name)


def roles(run: Ran) -> list[str]:
    """Who was asked through the backend `recorded`."""
    return [role for role in ("optimizer", "target", "judge") if run.asked(role, "role")]


def started(name: str) -> Look:
    return lambda run: run.started(name)


def error(run: Ran) -> str:
    return run.error


def folder_name(run: Ran) -> str:
    return run.folder.name


def at_once(role: str) -> Look:
    """Whether ever more than one call of a role was under way."""

    def look(run: Ran) -> bool:
        calls = [event for event in run.events if event["event"] == "model_called" and event["role"] == role]
        ends = [datetime.fromisoformat(call["time"]).timestamp() for call in calls]
        spans = sorted((end - call["seconds"], end) for end, call in zip(ends, calls, strict=True))
        return any(later[0] < earlier[1] - 0.005 for earlier, later in itertools.pairwise(spans))

    return look


def dollars(run: Ran) -> bool:
    """Whether the calls cost something."""
    return bool(json.loads(run.text("summary.json"))["token_summary"]["_total"]["usd"])


def stages(run: Ran) -> list[str]:
    """Which kinds of call there were."""
    return sorted(json.loads(run.text("summary.json"))["token_summary"])


def slow_replies(run: Ran) -> bool:
    """Whether most were: on a busy machine some are, whatever is configured."""
    return median(event["seconds"] for event in run.events if event["event"] == "model_called") > 0.015


def states(run: Ran) -> list[dict[str, Any]]:
    """What the environment `rehearsal` keeps of each attempt."""
    return [row["attempt"]["state"] for row in run.project.lines(run.folder / "outcomes.jsonl")]


def said(variable: str) -> Look:
    """Whether a worker has an environment variable."""
    return lambda run: any(variable in state["told"] for state in states(run))


def missing(run: Ran) -> int:
    """How many attempts came to no score."""
    return sum("missing" in row for row in run.project.lines(run.folder / "outcomes.jsonl"))


def workers(run: Ran) -> bool:
    """Whether there was more than one worker process."""
    return len({state["worker"] for state in states(run)}) > 1


def tries(run: Ran) -> bool:
    return any(event.get("tries", 1) > 1 for event in run.events if event["event"] == "model_called")


@frozen
class Case:
    """An option's value that is not the one that `base` and the project have, and where the change shows."""

    value: str
    look: Look
    base: Sequence[str] = ()
    refused: str = ""
    """Words of the sentence, where the value decides that nothing can be done."""


RECORDED = (
    "model.optimizer_backend=recorded", "model.target_backend=recorded", "model.judge_backend=recorded",
    "model.recorded_folder=REQUESTS",
)  # fmt: skip
JUDGED = (*RECORDED, "env.name=judged")
SLOW = ("optimizer.use_slow_update=true", "optimizer.learning_rate=1")
META = ("train.num_epochs=3", "optimizer.learning_rate=1")
RATIO = ("env.split_mode=ratio", "env.data_path=all.json")
ONE = ("train.num_epochs=1",)
TASKS = (*RECORDED, *ONE, "env.name=tasks", *RATIO)
COMMENTED = (*TASKS, "env.feedback=comments.jsonl")
REHEARSED = (
    "train.num_epochs=1",
    "train.batch_size=1",
    "env.name=rehearsal",
    "env.split_dir=rehearsed",
    "execution.executor=processes",
)
DENSE = ("evaluation.use_semantic_density=true",)
WORDS = ("evaluation.leading_words=[answer]",)
SOFT = ("evaluation.gate_metric=mixed",)
AWARE = ("optimizer.use_skill_aware_reflection=true",)
FORGETFUL = (*AWARE, "model.simulated_lapses=0.5")
LATENT = (*ONE, "model.simulated_latency=0.05", "gradient.minibatch_size=1")
REWRITING = (*RECORDED, *ONE, "optimizer.skill_update_mode=full_rewrite_minibatch")
LAB = ('hooks.path=["."]', *ONE)
status = content("summary.json", "status")
FIRST_TASKS = rows("steps/step_0001/rollout/results.jsonl", "id")
REASONS = rows("steps/step_0001/rollout/results.jsonl", "fail_reason")
PAIRS = "slow_update/epoch_02/comparison_pairs.json"

CASES: dict[str, Case] = {
    "train.num_epochs": Case("1", steps("step")),
    "train.train_size": Case("5", error, refused="train.train_size is 5"),
    "train.batch_size": Case("2", steps("rollout_n")),
    "train.accumulation": Case("2", steps("accumulation_batches")),
    "train.seed": Case("7", FIRST_TASKS),
    "train.samples_per_task": Case("2", steps("rollout_n"), ONE),
    "train.patience": Case("1", steps("step"), ("hooks.plugins=[silent]",)),
    "gradient.minibatch_size": Case("1", files("steps/step_0001/patches/*")),
    "gradient.merge_batch_size": Case(
        "2", asked("optimizer"), (*RECORDED, *ONE, "train.batch_size=6", "gradient.minibatch_size=1")
    ),
    "gradient.analyst_workers": Case("1", at_once("optimizer"), LATENT),
    "gradient.failure_only": Case("true", files("steps/*/patches/*succ*")),
    "gradient.keep_step_buffer": Case("true", asked("optimizer"), RECORDED),
    "gradient.failure_below": Case("0.5", files("steps/*/patches/*fail*"), ("env.name=graded", *ONE)),
    "optimizer.lr_scheduler": Case("linear", steps("planned_edit_budget")),
    "optimizer.lr_control_mode": Case("none", steps("planned_edit_budget", "lr_control_mode")),
    "optimizer.skill_update_mode": Case("rewrite_from_suggestions", files("steps/*/rewrite_result.json")),
    "optimizer.learning_rate": Case("1", steps("edit_budget", "edit_apply_summary")),
    "optimizer.min_learning_rate": Case("1", steps("planned_edit_budget"), ("optimizer.lr_scheduler=linear",)),
    "optimizer.max_skill_tokens": Case("15", steps("action", "reason"), ONE),
    "optimizer.use_slow_update": Case("true", files("slow_update/*/slow_result.json"), SLOW[1:]),
    "optimizer.slow_update_samples": Case("2", content(PAIRS), SLOW),
    "optimizer.slow_update_gate_with_selection": Case(
        "false", content("slow_update/epoch_02/slow_result.json", "action"), SLOW
    ),
    "optimizer.longitudinal_pair_policy": Case("changed", content(PAIRS), SLOW),
    "optimizer.use_skill_aware_reflection": Case("true", asked("optimizer"), (*RECORDED, *ONE)),
    "optimizer.skill_aware_appendix_source": Case("failure_only", asked("optimizer"), (*RECORDED, *ONE, *AWARE)),
    "optimizer.skill_aware_consolidate_threshold": Case("1", stages, FORGETFUL),
    "optimizer.use_meta_skill": Case("true", asked("optimizer", "stage"), (*RECORDED, *META)),
    "evaluation.use_gate": Case("false", steps("action", "reason")),
    "evaluation.gate_metric": Case("soft", steps("bar", "candidate_gate_score")),
    "evaluation.gate_mixed_weight": Case("0.9", steps("bar", "candidate_gate_score"), SOFT),
    "evaluation.sel_env_num": Case("3", rows("selection_eval_baseline/results.jsonl", "id")),
    "evaluation.test_env_num": Case("1", rows("test_eval/results.jsonl", "id"), ("evaluation.eval_test=true",)),
    "evaluation.eval_test": Case("true", files("test_eval*/summary.json")),
    "evaluation.deterministic_target": Case(
        "true", lambda run: {r["sample"] for r in run.project.lines(run.folder / "outcomes.jsonl")}
    ),
    "evaluation.missing_retries": Case("0", missing, (*RECORDED, *ONE, "model.recorded_busy=line 1?")),
    "evaluation.min_coverage": Case("0.5", steps("action"), (*RECORDED, "model.recorded_rejected=line 7?")),
    "evaluation.use_semantic_density": Case("true", steps("bar"), WORDS),
    "evaluation.semantic_density_weight": Case("0.5", steps("bar"), (*DENSE, *WORDS)),
    "evaluation.leading_words": Case("[answer]", steps("bar"), DENSE),
    "env.name": Case("judged", roles, RECORDED),
    "env.skill_init": Case("other.md", content("skills/skill_v0000.md")),
    "env.out_root": Case("elsewhere", folder_name),
    "env.split_mode": Case("ratio", started("splits"), RATIO[1:]),
    "env.split_ratio": Case("1:1:1", started("splits"), RATIO),
    "env.split_seed": Case("0", FIRST_TASKS, RATIO),
    "env.split_dir": Case("other", started("splits")),
    "env.data_path": Case("fewer.json", started("splits"), RATIO),
    "env.split_output_dir": Case("made", files("_generated_splits/**/*.json"), RATIO),
    "env.limit": Case("3", started("splits")),
    "env.workers": Case("1", at_once("target"), LATENT),
    "env.exec_timeout": Case("0.001", error, LATENT, refused="call_timeout"),
    "env.attempt_timeout": Case("0.001", REASONS, LATENT),
    "env.max_turns": Case("2", asked("target"), RECORDED),
    "env.max_completion_tokens": Case("9", asked("target", "max_tokens"), RECORDED),
    "env.context_limit": Case("10", asked("target"), RECORDED),
    "env.fields": Case("{inputs: [question]}", asked("target"), TASKS),
    "env.scorer": Case("token_f1", rows("steps/step_0001/rollout/results.jsonl", "scores"), TASKS),
    "env.prompt": Case("Say {{question}}", asked("target"), TASKS),
    "env.answer": Case("whole", asked("target"), TASKS),
    "env.reference_separator": Case("o", REASONS, (*TASKS, "env.data_path=texts.json")),
    "env.dataset": Case("owner/name", error, TASKS, refused="env.dataset names a data set and"),
    "env.feedback": Case("comments.jsonl", asked("optimizer"), TASKS),
    "env.feedback_scope": Case("task", asked("optimizer"), COMMENTED),
    "model.backend": Case(
        "simulated",
        roles,
        ("model.optimizer_backend=", "model.target_backend=", "model.backend=recorded", RECORDED[-1]),
    ),
    "model.optimizer_backend": Case("simulated", roles, RECORDED),
    "model.target_backend": Case("simulated", roles, RECORDED),
    "model.judge_backend": Case("simulated", roles, JUDGED),
    "model.optimizer": Case("one", asked("optimizer", "model"), RECORDED),
    "model.target": Case("one", asked("target", "model"), RECORDED),
    "model.judge": Case("one", asked("judge", "model"), JUDGED),
    "model.reasoning_effort": Case("high", asked("optimizer", "effort"), RECORDED),
    "model.rewrite_reasoning_effort": Case("high", asked("optimizer", "effort"), REWRITING),
    "model.rewrite_max_completion_tokens": Case("99", asked("optimizer", "max_tokens"), REWRITING),
    "model.max_rejections": Case(
        "1", error, (*RECORDED, *ONE, "model.recorded_rejected=analyst"), refused="to the optimizer"
    ),
    "model.prices": Case("{simulated: {input: 2.5, output: 10}}", dollars, ONE),
    "model.simulated_world": Case("fixed.yaml", steps()),
    "model.simulated_seed": Case("99", steps()),
    "model.simulated_latency": Case("0.03", slow_replies, ONE),
    "model.simulated_noise": Case("0.5", steps("rollout_hard")),
    "model.simulated_lapses": Case("0.9", steps("rollout_hard")),
    "model.simulated_rate_limits": Case("0.2", tries, ONE),
    "model.simulated_server_errors": Case("0.1", tries, ONE),
    "model.simulated_refusals": Case("0.5", REASONS, ONE),
    "model.simulated_malformed_replies": Case("0.5", steps("model_failures", "rollout_hard")),
    "model.simulated_empty_replies": Case("0.5", steps("model_failures", "rollout_hard")),
    "budget.usd": Case("20", status, (*ONE, "model.prices={simulated: {input: 1000, output: 1000}}")),
    "budget.tokens": Case("20000", status, ONE),
    "budget.calls": Case("10", status, ONE),
    "budget.wall_minutes": Case("0.0001", status, ONE),
    "budget.roles": Case("{optimizer: {calls: 1}}", status),
    "budget.reserve_final": Case("0.9", status, ("evaluation.eval_test=true", "budget.calls=100")),
    "budget.assume_per_call": Case("{usd: 0.5}", error, (*RECORDED, *ONE, "budget.usd=900")),
    "hooks.plugins": Case("[silent]", steps("action")),
    "hooks.path": Case('["."]', error, (*ONE, "hooks.plugins=[lab_of_liveness:Noisy]")),
    "hooks.settings": Case("{silent: {since: 2}}", steps("action"), ("hooks.plugins=[silent]",)),
    "hooks.disable": Case("[slow_update]", files("slow_update/*/slow_result.json"), SLOW),
    "hooks.override": Case("{select: lab_of_liveness:nothing}", steps("action"), LAB),
    "hooks.wrap": Case("{select: lab_of_liveness:around}", steps("action"), LAB),
    "hooks.strict": Case("true", error, (*LAB, "hooks.plugins=[lab_of_liveness:Noisy]"), refused="too loud"),
    "execution.executor": Case("processes", started("executor"), ONE),
    "execution.worker_variables": Case("[SKILLOPT_REHEARSED]", said("SKILLOPT_REHEARSED"), REHEARSED),
    "execution.worker_attempts": Case("1", workers, (*REHEARSED, "env.workers=1")),
    "prompts.analyst_failure": Case("mine.md", asked("optimizer"), (*RECORDED, *ONE)),
}
"""Option -> the change, and what it changes."""

LAB_MODULE = """\
import attrs
from skillopt_kernel import hookimpl

def nothing(update):
    return attrs.evolve(update, items=())

def around(update):
    chosen = yield
    return attrs.evolve(chosen, items=())

class Noisy:
    @hookimpl
    def skillopt_step_finished(self, event):
        raise ValueError("too loud")
"""


COMMON_OVER_HTTP: dict[str, Any] = {
    "timeout_seconds": 0.05, "max_tokens": 7, "temperature": 0.5, "structured_output": True, "send_seed": True,
}  # fmt: skip
ANOTHER: dict[str, Any] = {"base_url": "ROOT/openai/v1", "api_key": "sk-0123456789", "model": "mine"}

OVER_HTTP: dict[str, dict[str, Any]] = {
    "openai_compatible": {
        **COMMON_OVER_HTTP, **ANOTHER, "token_limit_field": "max_completion_tokens", "send_effort": True,
    },
    "qwen_chat": {
        **COMMON_OVER_HTTP, **ANOTHER, "thinking_mode": "disabled", "enable_thinking": True,
        "use_max_completion_tokens": True,
    },
    "minimax_chat": {
        **{key: value for key, value in COMMON_OVER_HTTP.items() if not key.startswith("s")}, **ANOTHER,
        "enable_thinking": True, "region": "cn_zh",
    },
    "openai_chat": {
        **{f"openai_chat_{key}": value for key, value in COMMON_OVER_HTTP.items()},
        "openai_chat_token_limit_field": "max_tokens", "openai_chat_api": "responses",
        "openai_chat_base_model": "gpt-5.5", "openai_base_url": "ROOT/openai/v1", "openai_api_key": "sk-0123456789",
        "azure_openai_endpoint": "ROOT", "azure_openai_api_key": "sk-9876543210",
        "azure_openai_api_version": "2024-10-21", "azure_openai_auth_mode": "openai_compatible",
    },
}  # fmt: skip
"""HTTP backend -> key without its prefix -> a value that changes what an endpoint receives, or what it may do."""

OF_CODEX = {
    "path": "OTHER", "sandbox": "danger-full-access", "network_access": True, "web_search": True,
    "approval_policy": "on-request", "reasoning_effort": "high", "profile": "mine", "base_url": "ROOT/openai/v1",
    "api_key": "sk-0123456789", "auth_file": "AUTH", "timeout_seconds": 0.01, "pass_variables": ("SKILLOPT_REHEARSED",),
    "use_sdk": "sdk",
}  # fmt: skip
"""Key of codex_exec -> a value that changes what the program is told or given, or what becomes of a job."""

OF_ISOLATION = {"execution.require_isolation", "model.codex_exec_readable_paths"}
"""Keys that matter where agent programs are walled in, or cannot be: test_agents_train and the library's tests."""

AT_AZURE = {"azure_openai_endpoint": "ROOT", "azure_openai_api_key": "sk-azure"}
"""What is set beside the keys that only matter there."""

OF_TOKENS = {"model.azure_openai_ad_scope", "model.azure_openai_managed_identity_client_id"}
"""Keys that change what a token is asked for: the tests of `openai_chat` ask for some."""

BACKENDS = [("backend", name, "model") for name in ("simulated", "codex_exec", *OVER_HTTP)]


ELSEWHERE = {"env.dataset_config", "env.dataset_splits", "env.dataset_revision"}
"""Keys that need a package which is not installed here: the tests of skillopt-env-tasks show what they change."""


IN_THE_TABLE = ("searchqa", "tasks")
"""Environments whose keys are in the table; those of others are shown beside them, on data of their own."""


def options() -> set[str]:
    """Every key of the kernel, and of the gates, schedulers, update modes, backends, hooks, searchqa and tasks."""
    found = {f"{section}.{field.name}" for section, cls in SECTIONS.items() for field in attrs.fields(cls)}
    kinds = {"gate": "evaluation", "scheduler": "optimizer", "update": "optimizer", "executor": "execution"}
    drivers = [(each.kind, each.name, section) for kind, section in kinds.items() for each in installed(kind)]
    for kind, name, section in [*drivers, *(("env", name, "env") for name in IN_THE_TABLE), *BACKENDS]:
        manifest = load_manifest(kind, name)
        settings = settings_class(manifest)
        fields = attrs.fields(settings) if settings is not None else ()
        found |= {f"{manifest.section or section}.{manifest.prefix}{field.name}" for field in fields}
    for each in installed("hook"):
        manifest = load_manifest("hook", each.name)
        settings = settings_class(manifest)
        for key in manifest.keys:  # the switch in a section, beside which the plugin's settings may stand
            fields = attrs.fields(settings) if settings is not None else ()
            found |= {key} | {f"{key.partition('.')[0]}.{field.name}" for field in fields}
    return found


def test_every_option_is_in_the_table_once() -> None:
    listed = {name for name in CASES if not name.startswith("prompts.")}
    for name, keys in OVER_HTTP.items():
        listed |= {f"model.{load_manifest('backend', name).prefix}{key}" for key in keys}
    listed |= OF_TOKENS | OF_ISOLATION | ELSEWHERE | {f"model.codex_exec_{key}" for key in OF_CODEX}
    assert options() - listed == set(), "options that nobody has shown to change anything"
    assert listed - options() == set(), "options that do not exist any more"


def test_the_keys_of_every_other_environment_are_shown_beside_it() -> None:
    for each in installed("env"):
        settings = settings_class(load_manifest("env", each.name))
        if settings is None or each.name in IN_THE_TABLE or not each.distribution.startswith("skillopt-env-"):
            continue
        module = each.distribution.replace("-", "_")
        (path,) = Path(__file__).parents[1].glob(f"skillopt_envs/*/tests/test_{module}_liveness.py")
        assert f"attrs.fields({settings.__name__})" in path.read_text("utf-8"), f"{path} must name every key"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project.make(tmp_path_factory.mktemp("liveness"), train=6, selection=4, test=2)
    items = [item for split in ("train", "val", "test") for item in project.json(f"data/{split}/items.json")]
    project.write("all.json", json.dumps(items))
    project.write("fewer.json", json.dumps(items[:10]))
    project.write("texts.json", json.dumps([{**item, "answers": item["answers"][0]} for item in items]))
    start = skill_hash((project.folder / "skill.md").read_text("utf-8"))
    told = [{"task": item["id"], "version": version, "comment": f"Of {version}."}
            for item in items for version in (start, "0123456789abcdef")]  # fmt: skip
    project.write("comments.jsonl", "".join(json.dumps(row) + "\n" for row in told))
    for split, part in (("train", items[:4]), ("val", items[4:8]), ("test", items[8:])):
        project.write(f"other/{split}/items.json", json.dumps(part))
    project.write("fixed.yaml", (project.folder / "world.yaml").read_text().replace("0.95", "0.3"))
    project.write("other.md", "# Another start\n")
    project.write("mine.md", "Look closely. Up to {{budget}} edits like {{schema}}.\n")
    project.write("lab_of_liveness.py", LAB_MODULE)
    changes = {
        "_base_": "config.yaml",
        "train": {"num_epochs": 2, "batch_size": 3},
        "evaluation": {"eval_test": False},
    }
    project.write("base.yaml", json.dumps(changes))
    for split in ("train", "val", "test"):
        item = {"id": split, "question": "Who?", "answer": "me", "attempt": ["variables"]}
        project.write(f"rehearsed/{split}/items.json", json.dumps([item]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLOPT_REHEARSED", "yes")
        patch.chdir(project.folder)
        probe_plugins.install(project.folder / "plugins", patch)
        yield project


RUNS: dict[tuple[str, ...], Ran] = {}


def ran(project: Project, overrides: Sequence[str]) -> Ran:
    """A run of the project with these overrides, which is made once."""
    key = tuple(overrides)
    if key not in RUNS:
        RUNS[key] = run(project, key, str(len(RUNS)))
    return RUNS[key]


def run(project: Project, overrides: Sequence[str], name: str) -> Ran:
    parent = project.folder / "runs" / name
    (parent / "requests").mkdir(parents=True)
    mine = [f"env.out_root={parent / 'run'}"]
    for text in overrides:
        text = text.replace("REQUESTS", str(parent / "requests"))
        mine.append(text if not text.startswith("env.out_root=") else f"env.out_root={parent / text[13:]}")
    try:
        summary = train("base.yaml", mine)
    except SkillOptError as problem:
        return Ran(parent / "run", project, str(problem))
    return Ran(Path(summary.folder), project)


@pytest.mark.parametrize("option", CASES)
def test_switching_an_option_changes_what_a_run_does(project: Project, option: str) -> None:
    case = CASES[option]
    before = ran(project, case.base)
    after = ran(project, (*case.base, f"{option}={case.value}"))
    if case.refused:
        assert (before.error, case.refused in after.error) == ("", True), after.error
        return
    assert (bool(before.error), after.error) == (case.look is error, "")
    assert case.look(before) != case.look(after)


def test_what_is_compared_is_the_same_in_a_second_run(project: Project) -> None:
    """What the cases look at tells of the option: of the same configuration it tells the same."""
    for base in {case.base: None for case in CASES.values()}:
        first, second = ran(project, base), run(project, base, f"again-{len(RUNS)}-{len(base)}-{abs(hash(base))}")
        for option, case in CASES.items():
            if case.base == base and not (first.error or case.look is folder_name):
                assert case.look(first) == case.look(second), option


@pytest.mark.parametrize(("backend", "key"), [(name, key) for name, keys in OVER_HTTP.items() for key in keys])
def test_a_key_of_the_endpoint_changes_what_it_receives(backend: str, key: str) -> None:
    with ChatServer([Reply("ok", delay=0.2)]) as server:
        base = AT_AZURE if key in ("azure_openai_api_key", "azure_openai_api_version", "azure_openai_auth_mode") else {}
        changes = AT_AZURE if key == "azure_openai_endpoint" else base | {key: OVER_HTTP[backend][key]}
        assert received(server, backend, base) != received(server, backend, changes)


def received(server: ChatServer, name: str, changes: dict[str, Any]) -> tuple[Any, ...]:
    """What the server gets from one call that uses everything, and whether the caller waited for its answer."""
    settings = settings_class(load_manifest("backend", name))
    assert settings is not None
    if "region" in changes:
        return (settings(**changes).address,)  # of the platform itself, which no test asks
    context = DriverContext(logger=logging.getLogger("skillopt"), role="optimizer")
    given = {"openai_base_url" if name == "openai_chat" else "base_url": "ROOT/v1", **changes}
    told = {key: each.replace("ROOT", server.root) if isinstance(each, str) else each for key, each in given.items()}
    backend = make_driver("backend", name, settings(**told), context)
    request = ChatRequest((Message("user", "Hello"),), schema={"type": "object"}, max_tokens=9, effort="high", seed=1)
    try:
        backend.open_chat("optimizer").complete(request)
    except CallTimeout:
        return ("not waited for",)
    finally:
        backend.close()
    last = server.requests[-1]
    return last.path, last.headers.get("authorization"), last.headers.get("api-key"), last.body


@pytest.mark.parametrize("key", OF_CODEX)
def test_a_key_of_codex_changes_what_it_is_told(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLOPT_REHEARSED", "yes")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "operator"))
    (tmp_path / "operator").mkdir()
    (tmp_path / "operator/mine.config.toml").write_text("mine = true", "utf-8")
    (tmp_path / "auth.json").write_text("{}", "utf-8")
    programs = {"path": stand_in(tmp_path / "programs", "codex"), "OTHER": stand_in(tmp_path / "others", "codex")}
    with ChatServer(["ok"]) as server:
        places = {"ROOT": server.root, "OTHER": str(programs["OTHER"]), "AUTH": str(tmp_path / "auth.json")}
        base = {"path": str(programs["path"])} | ({} if key == "auth_file" else {"base_url": f"{server.url}"})
        value = OF_CODEX[key]
        for name, place in places.items():
            value = value.replace(name, place) if isinstance(value, str) else value
        value = Path(value) if key == "auth_file" else value
        assert told_to_codex(server, base) != told_to_codex(server, base | {key: value})


def told_to_codex(server: ChatServer, given: dict[str, Any]) -> Any:
    """What the stand-in for Codex was told and given for one job, or the error that the job came to."""
    settings = settings_class(load_manifest("backend", "codex_exec"))
    assert settings is not None
    try:
        backend = make_driver("backend", "codex_exec", settings(**given), DriverContext(logging.getLogger("skillopt")))
    except ConfigError as error:
        return type(error)
    try:
        backend.open_agent("target").run(AgentJob("Do it.", "# Skill\n\n- Do it well.\n", edits=True))
    except ModelError as error:
        return type(error)
    finally:
        backend.close()
    last = server.requests[-1]
    return last.path, last.headers.get("authorization"), last.body
